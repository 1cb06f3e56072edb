"""R8 behind PgBouncer in transaction mode: tenants that share server connections never see each other's rows."""

import os
from typing import Any

import pytest
from django.db import connections

from ductor.databases import login_settings
from tests.operations.pooling import pooler
from tests.tenants.test_pool import interleave

REQUESTS = 10_000 if os.environ.get("DUCTOR_TEST_FULL") == "1" else 400


@pytest.mark.parametrize("size", [1, 2])
def test_r8_behind_a_transaction_pooler_each_request_sees_its_own_tenant(size: int) -> None:
    plain = connections["default"].settings_dict
    with pooler(size) as running:
        options = {name: value for name, value in plain["OPTIONS"].items() if name != "pool"}
        login = login_settings(running.url_of("test"))
        settings: dict[str, Any] = {**plain, **login, "CONN_MAX_AGE": None, "OPTIONS": options}
        wrong, backends = interleave(settings, REQUESTS)
    assert wrong == []
    assert len(backends) == size
