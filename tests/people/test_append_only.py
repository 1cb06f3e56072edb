"""Facts are only ever added: no role but the owner changes or removes one, or what guards it (B24, D17)."""

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ductor.databases import DATABASE_NAME, connection_settings, login_settings, psycopg_parameters
from tenants.queries import TenantView
from tests.builders import build_tenant, claim, rows, start
from workflows.claims import StepRecord, record_steps

TABLES = ("tenants_act", "workflows_step")
ROLES = ("web", "worker", "operator", "test")
STATEMENTS = (
    "update {0} set tenant_id = tenant_id",
    "update {0} set {1} = {1} where tenant_id is not null",
    "update only {0} set {1} = default",
    "delete from {0}",
    "delete from {0} where tenant_id is not null",
    "truncate {0}",
    "truncate {0} cascade",
    "merge into {0} a using {0} b on a.tenant_id = b.tenant_id when matched then delete",
    "merge into {0} a using {0} b on a.tenant_id = b.tenant_id when matched then update set {1} = b.{1}",
    "insert into {0} select * from {0} on conflict ({2}) do update set {1} = excluded.{1}",
    "select * from {0} for update",
    "select * from {0} for no key update",
    "alter table {0} disable trigger all",
    "alter table {0} disable trigger immutable_rows",
    "alter table {0} disable row level security",
    "alter table {0} no force row level security",
    "alter table {0} owner to current_user",
    "alter table {0} rename to gone",
    "alter table {0} drop column {1}",
    "alter table {0} alter column {1} drop not null",
    "alter table {0} set unlogged",
    "drop table {0}",
    "drop trigger immutable_rows on {0}",
    "drop trigger immutable_table on {0}",
    "create trigger mine before insert on {0} for each row execute function tenants_refuse_change()",
    "create rule mine as on insert to {0} do instead nothing",
    "drop policy tenant_rows on {0}",
    "drop policy owner_rows on {0}",
    "alter policy tenant_rows on {0} using (true)",
    "create policy mine on {0} using (true)",
    "create index mine on {0} (tenant_id)",
    "create or replace function tenants_refuse_change() returns trigger language plpgsql as 'begin return old; end'",
    "drop function tenants_refuse_change() cascade",
    "alter function tenants_refuse_change() owner to current_user",
    "set session_replication_role = replica",
    "create or replace view tenants_act as select 1",
)
COLUMN = {"tenants_act": "act", "workflows_step": "name"}
KEY = {"tenants_act": "tenant_id, id", "workflows_step": "tenant_id, task_id, name, attempt"}


@pytest.fixture
def facts() -> Iterator[TenantView]:
    """A tenant with an act and a step, and proof that not a letter of them moved."""
    tenant = build_tenant()
    start(tenant)
    [claimed] = claim()
    [(now,)] = rows("select ductor_now()")
    record_steps(records=[StepRecord(claimed.claim, "s", 1, "completed", 1, None, now, now)])
    before = _facts(tenant)
    assert all(before), before
    yield tenant
    assert _facts(tenant) == before


def _facts(tenant: TenantView) -> list[Any]:
    looks = (
        "select t::text from {0} t where tenant_id = %s order by 1",
        "select polname, polroles::text, pg_get_expr(polqual, polrelid) from pg_policy"
        " where polrelid = '{0}'::regclass and %s is not null order by 1",
        "select tgname, tgenabled from pg_trigger where tgrelid = '{0}'::regclass and %s is not null order by 1",
        "select relacl::text, relowner, relrowsecurity, relforcerowsecurity from pg_class"
        " where oid = '{0}'::regclass and %s is not null",
    )
    return [rows(look.format(table), tenant.id) for table in TABLES for look in looks]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("table", TABLES)
def test_b24_no_role_changes_a_fact_or_what_guards_it(role: str, table: str, facts: TenantView) -> None:
    with psycopg.connect(**psycopg_parameters(connection_settings(role)), autocommit=True) as plain:
        for statement in STATEMENTS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), plain.transaction():
                plain.execute(f"set local ductor.tenant_id = '{facts.id}'")
                plain.execute(statement.format(table, COLUMN[table], KEY[table]))
                raise AssertionError(f"not refused: {statement}")


@pytest.mark.parametrize("table", TABLES)
def test_not_even_with_every_privilege_on_the_table(table: str, facts: TenantView) -> None:
    """The trigger is a guard of its own: a grant too many, or a function of the engine's, would not be enough."""
    changes = (f"update {table} set {COLUMN[table]} = 'forged'", f"delete from {table}", f"truncate {table}")
    login = {**login_settings(os.environ["DUCTOR_TEST_ADMIN_URL"]), "NAME": DATABASE_NAME}
    with psycopg.connect(**psycopg_parameters(login), autocommit=True) as admin:
        for role in ("ductor_engine", "ductor_operator", "ductor_web"):
            for change in changes:
                with admin.transaction(force_rollback=True):
                    admin.execute(f"grant all on {table} to {role}")
                    admin.execute(f"set local role {role}")
                    admin.execute(f"set local ductor.tenant_id = '{facts.id}'")
                    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="immutable"):
                        admin.execute(change)


def test_no_function_of_the_engine_s_writes_over_a_fact() -> None:
    found = rows(
        "select proname from pg_proc where pronamespace = 'public'::regnamespace and prosrc ~*"
        r" '(update|delete\s+from|truncate|merge\s+into)\s+(only\s+)?\"?(tenants_act|workflows_step)\y'"
    )
    assert found == []
    may = "select privilege_type from information_schema.role_table_grants where table_name = %s and grantee = %s"
    assert rows(may, "tenants_act", "ductor_engine") == []
    assert sorted(rows(may, "workflows_step", "ductor_engine")) == [("INSERT",), ("SELECT",)]


def test_an_act_is_added_for_one_s_own_tenant_alone(facts: TenantView) -> None:
    other = build_tenant()
    insert = (
        "insert into tenants_act (tenant_id, id, at, principal, act, target_kind, target_id, reason, request_id)"
        " values (%s, gen_random_uuid(), now(), '{}', 'x', 'x', 'x', '', '')"
    )
    before = rows("select count(*) from tenants_act")
    for role in ("web", "worker"):
        with psycopg.connect(**psycopg_parameters(connection_settings(role)), autocommit=True) as plain:
            for given in (facts.id, None):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), plain.transaction():
                    if given:
                        plain.execute(f"set local ductor.tenant_id = '{given}'")
                    plain.execute(insert, (other.id,))
    assert rows("select count(*) from tenants_act") == before
