"""Values that no face lets through are refused by the database too: who may call the function gets no further."""

import json
import uuid
from typing import Any

import pytest

from tenants.errors import LimitInvalid
from tenants.identity import SYSTEM_TENANT_ID
from tenants.policy import set_freeze, set_tenant_policy
from tenants.scope import scope_of
from tenants.store import call
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows
from tests.database import as_role
from workflows.errors import InputInvalid

PLAIN = {"workflow": "w", "version": 1, "queue": "default", "priority": 0, "input": {}, "max_failures": 3, "origin": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"due_at": "infinity"},
        {"due_at": "-infinity"},
        {"due_at": "20000-01-01T00:00:00Z"},
        {"delay_seconds": 1e12},
        {"delay_seconds": -1},
        {"version": -1},
        {"version": None},
        {"workflow": ""},
        {"workflow": "w" * 129},
        {"priority": 32000},
        {"key": ""},
        {"key": "k" * 129},
        {"max_failures": 0},
        {"input": "x" * 700_000},
        {"origin": {"note": "x" * 30_000}},
    ],
)
def test_a_value_out_of_bounds_is_refused_and_nothing_is_written(change: dict[str, Any]) -> None:
    tenant = build_tenant()
    document = {**PLAIN, "id": str(uuid.uuid4()), "content_hash": "x", **change}
    with pytest.raises(InputInvalid), scope_of(tenant.id):
        call("workflows_enqueue_tasks", tenant.id, json.dumps([document]))
    assert rows("select count(*) from workflows_task") == [(0,)]
    assert rows("select count(*) from workflows_taskkey") == [(0,)]
    assert_counters_true()


def test_the_system_tenant_has_no_policy_to_set_and_is_never_frozen() -> None:
    before = rows("select * from tenants_load")
    with as_role("operator"):
        with pytest.raises(LimitInvalid):
            set_tenant_policy(tenant_id=SYSTEM_TENANT_ID, max_outstanding=1, max_leases=1, principal=PRINCIPAL)
        with pytest.raises(LimitInvalid):
            set_freeze(tenant_id=SYSTEM_TENANT_ID, freeze={"claims"}, principal=PRINCIPAL)
    assert rows("select * from tenants_load") == before
