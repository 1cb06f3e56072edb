"""Every cache key is led by its tenant or by `system` (I27, S15, B01, B02, B20)."""

import uuid

import pytest
from django.core.cache import cache

from tenants.cache import key_function, system_keys
from tenants.errors import ScopeMissing
from tenants.scope import attach
from tests.builders import build_tenant, rows
from tests.database import KEYS_WITHOUT_TENANT, owner, touch


def test_a_key_without_a_tenant_raises() -> None:
    with pytest.raises(ScopeMissing):
        key_function("x", "", 1)
    with pytest.raises(ScopeMissing):
        cache.get("x")
    with pytest.raises(ScopeMissing):
        cache.set("x", 1)
    assert rows("select count(*) from tenants_cache_web") == [(0,)]


def test_two_tenants_and_the_system_never_share_a_value() -> None:
    a, b = build_tenant(), build_tenant()
    with attach(a.id):
        cache.set("answer", "a")
    with attach(b.id):
        assert cache.get("answer") is None
        cache.set("answer", "b")
    with system_keys():
        assert cache.get("answer") is None
        cache.set("answer", "system")
    for tenant, value in ((a, "a"), (b, "b")):
        with attach(tenant.id):
            assert cache.get("answer") == value
            cache.delete("answer")
    with system_keys():
        assert cache.get("answer") == "system"
    assert rows("select cache_key from tenants_cache_web") == [("system::1:answer",)]


def test_the_dump_of_the_keyspace_finds_a_key_without_a_tenant() -> None:
    touch()
    owner().execute(
        "insert into tenants_cache_web values ('answer', '', now()), (%s, '', now())", [f"{uuid.uuid4()}:x"]
    )
    assert len(rows(KEYS_WITHOUT_TENANT)) == 2
    owner().execute("truncate tenants_cache_web")


def test_no_process_can_write_what_another_kind_unpickles() -> None:
    granted = rows(
        "select table_name, grantee from information_schema.role_table_grants where table_name like 'tenants_cache_%%'"
        " and grantee <> 'ductor_owner' group by 1, 2 order by 1"
    )
    assert granted == [(f"tenants_cache_{name}", f"ductor_{name}") for name in ("operator", "web", "worker")]
