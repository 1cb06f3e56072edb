"""django-q2's tables under row security: what each role's SQL can do, the migration's way there and back, models."""

from importlib import import_module
from typing import Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.models.signals import post_save
from django_q.models import Schedule, Task
from django_q.signals import call_hook

from ductor.contrib.q2.fields import JsonTextField, decode, encode
from ductor.databases import connection_settings, psycopg_parameters
from tenants.db.operations import AdoptedTable
from tenants.queries import TenantView
from tenants.scope import attach, tenant_scope
from tests.builders import build_tenant, rows
from tests.compat.conftest import SHOP
from tests.database import as_role, owner, touch
from tests.workflows.conftest import TestWorker

TASK = (
    "insert into django_q_task ({0} id, name, func, started, stopped, success, attempt_count)"
    " values ({1} 'i', 'n', 'f', now(), now(), true, 1)"
)
SCHEDULE = "insert into django_q_schedule ({0} func, schedule_type, repeats) values ({1} 'f', 'O', -1)"
ORMQ = "insert into django_q_ormq ({0} key, payload) values ({1} 'k', 'p')"
TABLES = ("django_q_task", "django_q_schedule", "django_q_ormq")

DENIED = psycopg.errors.InsufficientPrivilege
CHECKED = "row-level security"


def run_as(role: str, statement: str, tenant: TenantView | None = None) -> int:
    """Run one statement of any SQL as a role; returns how many rows it touched."""
    touch()
    with psycopg.connect(**psycopg_parameters(connection_settings(role))) as plain:
        if tenant is not None:
            plain.execute(f"set local ductor.tenant_id = '{tenant.id}'")
        return plain.execute(statement.encode()).rowcount


def fill(tenant: TenantView) -> None:
    for statement in (TASK, SCHEDULE, ORMQ):
        owner().execute(statement.format("tenant_id,", f"'{tenant.id}',"))


def everything() -> list[tuple[Any, ...]]:
    return [row for table in TABLES for row in rows(f"select md5(t::text) from {table} t order by 1")]


@pytest.mark.parametrize("role", ["web", "worker"])
def test_s24_what_sql_can_do_to_django_q2s_tables(role: str) -> None:
    mine, other = build_tenant(), build_tenant()
    fill(other)
    before = everything()
    theirs = f"'{other.id}',"
    refused = [
        ORMQ.format("", ""),
        "select * from django_q_ormq",
        *[f"truncate {table}" for table in TABLES],
        *[f"alter table {table} no force row level security" for table in TABLES],
        *[f"alter table {table} alter column tenant_id drop not null" for table in TABLES],
        "select setval(pg_get_serial_sequence('django_q_schedule', 'id'), 1)",
        "alter table django_q_task alter column tenant_id set default null",
        TASK.format("tenant_id,", theirs),
        SCHEDULE.format("tenant_id,", theirs),
    ]
    if role == "web":
        refused += [TASK.format("", ""), "select * from q2_due_schedules(1, '{}')", "select * from q2_next_schedule()"]
    for statement in refused:
        with pytest.raises(DENIED):
            run_as(role, statement, mine)
    for statement in (TASK, SCHEDULE):
        with pytest.raises((DENIED, psycopg.errors.NotNullViolation)):
            run_as(role, statement.format("", ""))
    for table in TABLES[:2]:
        assert run_as(role, f"select * from {table}", mine) == 0
        assert run_as(role, f"update {table} set func = 'os.system'", mine) == 0
        assert run_as(role, f"delete from {table}", mine) == 0
        assert run_as(role, f"select * from {table}") == 0
    assert everything() == before


def test_a_row_can_not_be_moved_to_another_tenant() -> None:
    mine, other = build_tenant(), build_tenant()
    fill(mine)
    before = everything()
    for table in TABLES[:2]:
        with pytest.raises(DENIED, match=CHECKED):
            run_as("worker", f"update {table} set tenant_id = '{other.id}'", mine)
    assert everything() == before


def test_operators_read_results_and_keep_schedules(shop: TestWorker) -> None:
    mine, other = build_tenant(), build_tenant()
    fill(mine)
    fill(other)
    for table in TABLES:
        assert run_as("operator", f"select * from {table}") == 2
        assert run_as("operator", f"select * from {table}", mine) == 1
    for statement in (
        TASK.format("", ""),
        ORMQ.format("", ""),
        "delete from django_q_task",
        "delete from django_q_ormq",
    ):
        with pytest.raises(DENIED):
            run_as("operator", statement, mine)
    with as_role("operator"), attach(mine.id):
        Schedule.objects.create(func=f"{SHOP}.add", name="of-mine")
        assert Schedule.objects.count() == 2
    assert rows("select tenant_id from django_q_schedule where name = 'of-mine'") == [(mine.id,)]


def test_a_bare_statement_is_a_scope_of_its_own_and_ends_with_it() -> None:
    tenant = build_tenant()
    fill(tenant)
    with attach(tenant.id):
        assert [task.id for task in Task.objects.all().iterator(chunk_size=1)] == ["i"]
        assert not connection.in_atomic_block
        assert connection.bound_tenant is None  # type: ignore[attr-defined]
        with tenant_scope():
            assert Task.objects.get().pk == "i"
            with pytest.raises(LookupError), transaction.atomic():
                Task.objects.all().delete()
                raise LookupError
            assert Task.objects.count() == 1


def test_the_migration_adopts_rows_that_had_no_tenant_and_can_be_undone() -> None:
    """Back and forth in one transaction of the owner, with rows in the tables."""
    migration = import_module("ductor.contrib.q2.migrations.0001_initial").Migration
    adopted = [operation for operation in migration.operations if isinstance(operation, AdoptedTable)]
    assert {operation.table for operation in adopted} == set(TABLES)
    fill(build_tenant())
    columns = "select count(*) from information_schema.columns where table_name like 'django_q_%%' and column_name = %s"
    with as_role("owner"), pytest.raises(LookupError), transaction.atomic():
        with connections["default"].schema_editor(atomic=False) as editor:
            for operation in adopted:
                operation.database_backwards("q2", editor, None, None)
            with editor.connection.cursor() as cursor:
                cursor.execute(columns, ["tenant_id"])
                assert cursor.fetchone() == (0,)
            for operation in adopted:
                operation.database_forwards("q2", editor, None, None)
            with editor.connection.cursor() as cursor:
                for table in TABLES:
                    cursor.execute(f"select tenant_id::text from {table}")
                    assert cursor.fetchall() == [("00000000-0000-7000-8000-000000000000",)]
        raise LookupError
    assert rows(columns, "tenant_id") == [(3,)]


def test_djangos_own_state_is_unchanged() -> None:
    with as_role("owner"):
        call_command("makemigrations", "django_q", "q2", check=True, dry_run=True, verbosity=0)


def test_no_field_of_django_q2_reads_a_pickle_and_no_row_names_a_hook_to_import() -> None:
    pickled = [
        field
        for model in apps.get_app_config("django_q").get_models()
        for field in model._meta.get_fields()
        if field.__class__.__module__.startswith("picklefield")
    ]
    assert pickled == []
    assert {field.name for field in Task._meta.get_fields() if isinstance(field, JsonTextField)} == {
        "args",
        "kwargs",
        "result",
    }
    assert call_hook not in post_save._live_receivers(Task)[0]


@pytest.mark.parametrize("value", [None, 0, "x", [1, [2]], {"a": None}, "\u2028\u00e9", 1.5, True])
def test_what_is_encoded_is_decoded(value: Any) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("text", ["", "gASVDAAAAAAAAACMBG5vcGWULg==", "{'a': 1}", "[" * 100_000, "nul"])
def test_what_was_not_encoded_here_is_none(text: str) -> None:
    assert decode(text) is None
