"""SQL functions: files, migrations and the live database agree; each names its tenant or stands in a list."""

import re

import pytest
from django.db.migrations.loader import MigrationLoader

from tenants.db.functions import function_files, newest_files, reinstall_changed
from tenants.db.grants import apply_grants, declared
from tenants.db.guard import tenant_tables
from tenants.db.operations import SqlFunction
from tests.builders import rows
from tests.database import owner

# Functions that take no p_tenant_id, are no trigger functions and are not DEFINER: why each may be so.
TENANTLESS = {
    "ductor_now": "the clock",
    "tenants_raise": "raises",
    "tenants_turn_blocked": "computes bits from numbers",
    "tenants_queue_clock": "reads a queue's clock",
    "tenants_move_work": "each element of p_moves names its tenant",
    "tenants_wake": "listeners belong to no tenant",
    "workflows_check_bounds": "compares numbers",
    "workflows_state_after": "names a state",
    "workflows_count_moves": "each element of p_moves names its tenant",
    "workflows_insert_steps": "each document names its tenant",
}
# SECURITY DEFINER functions that act for many tenants: why each may.
CROSS_TENANT = {
    "q2_due_schedules": "what is due is due for all tenants; answers ids alone",
    "q2_next_schedule": "one span of time, no tenant in it",
    "tenants_find_api_key": "runs before a tenant is known; answers one row for one hash",
    "tenants_find_invitation": "runs before a tenant is known; answers one row for one digest",
    "tenants_list_memberships": "names the tenants of one person, who is not in one yet",
    "workflows_claim_tasks": "the fair order is over all tenants",
    "workflows_finish_tasks": "a batch of claims, each with its tenant and token",
    "workflows_heartbeat_tasks": "a batch of claims, each with its tenant and token",
    "workflows_measure_classes": "figures by class, no tenant in them",
    "workflows_next_due": "one time, no tenant in it",
    "workflows_promote_due": "what is due is due for all tenants",
    "workflows_ready_tenants": "repeating a claim that raised, tenant by tenant",
    "workflows_record_steps": "a batch of claims, each with its tenant and token",
    "workflows_recover_tasks": "expired leases of all tenants",
    "workflows_release_tasks": "a batch of claims, each with its tenant and token",
}
LIVE = """
select p.proname, p.prosecdef, p.proargnames, p.prosrc, p.prorettype = 'trigger'::regtype, p.proconfig,
  p.proowner::regrole::text from pg_proc p where p.pronamespace = 'public'::regnamespace
"""


def test_every_file_is_installed_by_exactly_one_operation() -> None:
    installed = []
    for (app, _), migration in MigrationLoader(None).disk_migrations.items():
        for operation in migration.operations:
            if isinstance(operation, SqlFunction):
                installed.append((app, operation.name, operation.version))
    files = [(file.app, file.name, file.version) for file in function_files()]
    assert sorted(installed) == sorted(files)


def test_live_text_equals_the_newest_file_and_nothing_else_lives() -> None:
    live = {name: body for name, _, _, body, *_ in rows(LIVE)}
    assert live == {name: file.body for name, file in newest_files().items()}


def test_every_function_names_its_tenant_or_stands_in_a_list() -> None:
    tenantless, cross = set(), set()
    for name, definer, arguments, _, is_trigger, _, _ in rows(LIVE):
        if "p_tenant_id" in (arguments or []) or is_trigger:
            continue
        (cross if definer else tenantless).add(name)
    assert tenantless == set(TENANTLESS)
    assert cross == set(CROSS_TENANT)


def test_r15_definer_functions_are_the_engines_with_a_fixed_path_and_declared_callers() -> None:
    grants = declared()
    executable: dict[str, set[str]] = {}
    for name, role in rows(
        "select p.proname, case a.grantee when 0 then 'public' else a.grantee::regrole::text end"
        " from pg_proc p, aclexplode(p.proacl) a where p.pronamespace = 'public'::regnamespace"
    ):
        executable.setdefault(name, set()).add(role)
    definers = set()
    for name, definer, _, body, _, config, function_owner in rows(LIVE):
        if not name.endswith(("ductor_now", "tenants_raise", "turn_blocked", "state_after", "workflows_returned")):
            assert "search_path=pg_catalog, public, pg_temp" in (config or []), name
        if definer:
            definers.add(name)
            assert function_owner == "ductor_engine", name
        allowed = set(grants.functions.get(name, ())) | {"ductor_engine", function_owner}
        assert executable[name] - allowed == set(), name
        assert "execute format" not in body.lower(), name
    assert definers == grants.engine_functions
    assert set(grants.functions) == {name for name, *_ in rows(LIVE)}


def test_one_tenant_definer_functions_check_the_scope_first() -> None:
    for name, definer, arguments, body, is_trigger, *_ in rows(LIVE):
        if definer and "p_tenant_id" in (arguments or []) and not is_trigger:
            first = body.split("begin", 1)[-1].strip().split(";")[0]
            if name in ("workflows_mark_fault", "tenants_check_domain", "tenants_find_membership"):
                continue
            assert first == "perform tenants_require_scope(p_tenant_id)", name


def statements(body: str) -> list[str]:
    return [part for part in body.split(";") if part.strip()]


def test_every_statement_on_a_tenant_table_names_the_tenant() -> None:
    tables = re.compile(rf"\b({'|'.join(tenant_tables())})\b(?!\[\])")
    # Each reads across tenants by design and takes the tenant with it in a later statement.
    across = {"workflows_next_due": 2, "workflows_claim_tasks": 2}
    unnamed: dict[str, int] = {}
    for name, file in newest_files().items():
        for statement in statements(file.body):
            if tables.search(statement) and "tenant_id" not in statement:
                unnamed[name] = unnamed.get(name, 0) + 1
    assert unnamed == across


def test_only_the_clock_says_now() -> None:
    for name, file in newest_files().items():
        words = re.findall(r"(?<!ductor_)\b(now\(\)|clock_timestamp|current_timestamp|statement_timestamp)", file.body)
        assert (words == []) == (name != "ductor_now"), name


def test_sql_goes_down_only() -> None:
    order = ["tenants", "ledger", "workflows", "retention", "q2"]
    for name, file in newest_files().items():
        above = order[order.index(file.app) + 1 :]
        for app in above:
            assert not re.search(rf"\b{app}_[a-z]", file.body), f"{name} reaches up to {app}"


def test_functions_are_at_most_120_lines() -> None:
    assert {name: file.text.count("\n") for name, file in newest_files().items() if file.text.count("\n") > 120} == {}


def test_migrate_reinstalls_a_function_whose_live_text_differs(request: pytest.FixtureRequest) -> None:
    file = newest_files()["workflows_check_bounds"]

    def mend() -> None:
        # A function dropped and made again has lost its callers; after_migrate gives them back in the same way.
        with owner().cursor() as cursor:
            cursor.execute(file.text)
            apply_grants(cursor)

    request.addfinalizer(mend)
    owner().execute(file.text.replace("not between 1 and p_maximum", "not between 0 and p_maximum"))
    with owner().cursor() as cursor:
        assert reinstall_changed(cursor) == ["workflows_check_bounds"]
        assert reinstall_changed(cursor) == []
