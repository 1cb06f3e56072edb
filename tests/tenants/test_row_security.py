"""Row security as the plain role sees it (R1 to R31; B09, B10, B13, B14, B24)."""

import json
import uuid

import psycopg
import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError, ProgrammingError

from ductor.databases import connection_settings, psycopg_parameters
from tenants.db.roles import refuse_unsafe_role
from tenants.errors import RoleUnsafe, ScopeConflict
from tenants.models import Policy
from tenants.scope import attach, scope_of
from tenants.store import call
from tests.builders import PRINCIPAL, build_key, build_tenant, claim, rows, start
from tests.database import as_role, owner
from workflows.admission import NewTask, enqueue
from workflows.models import Definition, Task

INSERT = """
insert into workflows_task (tenant_id, id, workflow, version, queue, partition, priority, state, origin, nesting_depth,
  created_at, due_at, attempt, failures, max_failures, alone, token, charged_us, parent_run_id, root_run_id)
values (%s, %s, 'w', 1, 'default', '', 0, 'queued', '{}', %s, ductor_now(), ductor_now(), 0, 0, 3, false, 0, 0, %s, %s)
"""


def execute(sql: str, *params: object) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return cursor.rowcount


def sqlstate(error: BaseException) -> str:
    return error.__cause__.sqlstate  # type: ignore[union-attr]


def test_r17_rows_can_neither_be_made_for_nor_moved_to_another_tenant() -> None:
    a, b = build_tenant(), build_tenant()
    with pytest.raises(ProgrammingError, match="row-level security") as refused, scope_of(a.id):
        execute(
            "insert into workflows_definition (tenant_id, id, name, version, checksum, graph, created_at)"
            " values (%s, %s, 'w', 1, 'x', '{}', ductor_now())",
            b.id,
            uuid.uuid4(),
        )
    assert sqlstate(refused.value) == "42501"
    with as_role("operator"), attach(a.id), transaction.atomic():
        with pytest.raises(ProgrammingError), transaction.atomic():
            execute(
                "insert into tenants_apikey (tenant_id, id, name, prefix, hashed_key, scopes, created_at, created_by)"
                " values (%s, %s, 'x', 'x', 'x', '{}', ductor_now(), '{}')",
                b.id,
                uuid.uuid4(),
            )
    assert rows("select count(*) from workflows_definition") == [(0,)]
    assert rows("select count(*) from tenants_apikey") == [(0,)]


def test_models_refuse_another_tenants_row_and_fill_in_their_own() -> None:
    a, b = build_tenant(), build_tenant()
    with scope_of(a.id):
        mine = Definition(name="w", version=1, checksum="x", graph={})
        mine.save(force_insert=True)
        assert mine.tenant_id == a.id
        with pytest.raises(ScopeConflict):
            Definition(tenant_id=b.id, name="w", version=1, checksum="x", graph={}).save(force_insert=True)
        for delete in (mine.delete, Definition.objects.all().delete):
            with pytest.raises(TypeError):
                delete()
    with scope_of(b.id):
        assert not Definition.objects.exists()
        assert not Policy.objects.filter(tenant_id=a.id).exists()


def test_b09_bulk_writes_land_in_their_tenant() -> None:
    tenant = build_tenant()
    tasks = [NewTask("w", 1, {"n": n}) for n in range(100)]
    assert len(enqueue(tenant_id=tenant.id, tasks=tasks, principal=PRINCIPAL)) == 100
    assert rows("select tenant_id, count(*) from workflows_task group by 1") == [(tenant.id, 100)]
    assert rows("select outstanding from tenants_load where tenant_id = %s", tenant.id) == [(100,)]


def test_i13_r10_a_parent_of_another_tenant_is_refused_like_a_random_one() -> None:
    a, b = build_tenant(), build_tenant()
    (foreign,) = start(b)
    (own,) = start(a)
    seen = []
    for parent in (foreign, uuid.uuid4()):
        with as_role("owner"), pytest.raises(IntegrityError) as refused, scope_of(a.id):
            execute(INSERT, a.id, uuid.uuid4(), 1, parent, parent)
        diagnostics = refused.value.__cause__.diag  # type: ignore[union-attr]
        seen.append((sqlstate(refused.value), diagnostics.message_primary, diagnostics.message_detail))
    assert seen[0] == seen[1]
    assert seen[0][0] == "23503"
    for depth in (0, 2):
        with as_role("owner"), pytest.raises(IntegrityError), scope_of(a.id):
            execute(INSERT, a.id, uuid.uuid4(), depth, own, own)
    with as_role("owner"), scope_of(a.id):
        assert execute(INSERT, a.id, uuid.uuid4(), 1, own, own) == 1


def test_b10_r11_a_step_cannot_point_into_another_tenant() -> None:
    a, b = build_tenant(), build_tenant()
    (foreign,) = start(b)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        owner().execute(
            "insert into workflows_step (tenant_id, task_id, name, attempt, id, state, token, started_at, finished_at)"
            " values (%s, %s, 's', 1, gen_random_uuid(), 'completed', 1, now(), now())",
            [a.id, foreign],
        )


def test_r9_another_tenants_ids_and_keys_behave_like_unused_ones() -> None:
    a, b = build_tenant(), build_tenant()
    (foreign,) = start(b, key="shared")
    task = {"id": str(foreign), "workflow": "w", "version": 1, "queue": "default", "priority": 0, "origin": {}}
    with scope_of(a.id):
        made = call("workflows_enqueue_tasks", a.id, json.dumps([{**task, "max_failures": 3}]))
    assert made == [(foreign, True)]
    (own,) = start(a, key="shared")
    assert own != foreign
    assert rows("select count(*) from workflows_taskkey where key = 'shared'") == [(2,)]


def test_r3_r26_the_plain_role_can_change_no_structure_and_no_facts() -> None:
    tenant = build_tenant()
    build_key(tenant)
    start(tenant)
    for statement in (
        "alter table workflows_task no force row level security",
        "alter table workflows_task disable trigger all",
        "drop policy tenant_rows on workflows_task",
        "truncate workflows_task",
        "create table sneaky (id int)",
        "create function sneaky() returns int language sql as 'select 1'",
        "update tenants_load set max_leases = 1000000 where tenant_id is not null",
        "update tenants_turn set key = 0 where tenant_id is not null",
        "update workflows_task set state = 'completed' where tenant_id is not null",
        "delete from workflows_task where tenant_id is not null",
        "delete from workflows_taskkey where tenant_id is not null",
        "delete from tenants_apikey where tenant_id is not null",
        "update tenants_apikey set scopes = '{keys:write}' where tenant_id is not null",
        "update tenants_apikey set expires_at = null, revoked_at = null where tenant_id is not null",
        "select * from tenants_tenant",
        "select * from django_q_ormq",
        "select tenants_set_policy(null::uuid, 1, 1, 1, 0)",
        "set role ductor_owner",
        "set session authorization postgres",
    ):
        with psycopg.connect(**psycopg_parameters(connection_settings("test"))) as plain:
            plain.execute(f"set local ductor.tenant_id = '{tenant.id}'")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                plain.execute(statement)
    assert rows("select state from workflows_task") == [("queued",)]


@pytest.mark.parametrize("role", ["web", "worker", "operator"])
def test_b24_i19_acts_and_steps_are_immutable_for_every_role(role: str) -> None:
    build_tenant()
    assert rows("select count(*) from tenants_act")[0][0] >= 2
    for table in ("tenants_act", "workflows_step"):
        for statement in (
            f"update {table} set tenant_id = tenant_id",
            f"delete from {table}",
            f"truncate {table}",
            f"alter table {table} disable trigger all",
            f"drop trigger immutable_rows on {table}",
        ):
            with psycopg.connect(**psycopg_parameters(connection_settings(role))) as plain:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    plain.execute(statement)


def test_immutable_triggers_hold_even_with_the_privilege(request: pytest.FixtureRequest) -> None:
    build_tenant()
    request.addfinalizer(lambda: owner().execute("revoke update on tenants_act from ductor_engine"))
    owner().execute("grant update on tenants_act to ductor_engine")
    with owner().transaction(force_rollback=True):
        owner().execute("set local role ductor_engine")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="immutable"):
            owner().execute("update tenants_act set act = 'forged'")


def test_r2_b13_b14_unsafe_roles_are_refused() -> None:
    with as_role("owner"), pytest.raises(RoleUnsafe) as refused:
        refuse_unsafe_role()
    assert "ductor_owner owns tables" in str(refused.value)
    for role in ("web", "worker", "operator"):
        with as_role(role):
            refuse_unsafe_role()
    refuse_unsafe_role()


def test_r18_the_worker_reads_no_payload_without_a_tenant() -> None:
    tenant = build_tenant()
    start(tenant)
    parameters = psycopg_parameters(connection_settings("worker"))
    with psycopg.connect(**parameters, autocommit=True) as plain:
        assert plain.execute("select count(*) from workflows_task").fetchone() == (0,)
        with plain.transaction():
            plain.execute("set local ductor.tenant_id = ''")
            assert plain.execute("select count(*) from workflows_task").fetchone() == (0,)
        with plain.transaction():
            plain.execute(f"set local ductor.tenant_id = '{tenant.id}'")
            assert plain.execute("select count(*) from workflows_task").fetchone() == (1,)
        assert plain.execute("select count(*) from workflows_task").fetchone() == (0,)


def test_r25_copy_into_a_tenant_table_is_refused() -> None:
    tenant = build_tenant()
    with pytest.raises(psycopg.errors.FeatureNotSupported), scope_of(tenant.id):
        with connection.cursor() as cursor, cursor.cursor.copy("copy workflows_definition (tenant_id) from stdin"):
            pass


def test_r28_wake_ups_carry_no_tenant() -> None:
    from workflows.waking import clear_idle, listen_idle

    tenant = build_tenant()
    with psycopg.connect(**psycopg_parameters(connection_settings("web")), autocommit=True) as listener:
        listener.execute("listen ductor_wake")
        start(tenant)
        claim()
        assert list(listener.notifies(timeout=0.2)) == []
        listen_idle(worker="w1", queues=["default"])
        start(tenant)
        (note,) = listener.notifies(timeout=5, stop_after=1)
        assert (note.channel, note.payload) == ("ductor_wake", "")
        clear_idle(worker="w1")
        claim()
        start(tenant)
        assert list(listener.notifies(timeout=0.2)) == []


def test_operators_see_the_attached_tenant_or_all() -> None:
    a, b = build_tenant(), build_tenant()
    start(a)
    start(b, 2)
    with as_role("operator"):
        assert sorted(Task.objects.values_list("tenant_id", flat=True)) == sorted([a.id, b.id, b.id])
        with attach(a.id), transaction.atomic():
            assert Task.objects.count() == 1
            assert execute("select tenant_id from workflows_task") == 1
