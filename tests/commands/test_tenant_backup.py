"""S26: one tenant comes back from its backup, and nobody else's rows move."""

import json
import stat
from pathlib import Path

from tenants.keys import revoke_api_key
from tenants.policy import set_tenant_policy
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, rows, start
from tests.commands.running import ductor, ductor_process
from tests.commands.tenant_files import (
    build_worked_tenant,
    claim_of,
    end,
    export,
    freeze,
    hashes,
    leased,
    members,
    restore,
    unfreeze,
)
from tests.database import as_role, owner
from workflows.cancelling import cancel
from workflows.claims import Claim, Outcome, finish, heartbeat

TASKS = """select id, case state when 'leased' then 'queued' else state end, key, input, output, error, progress,
  priority, origin, attempt, failures, created_at, due_at, started_at, claimed_at, terminal_at
  from workflows_task where tenant_id = %s order by id"""
REPLACED = ("workflows_taskkey", "workflows_step", "django_q_task", "django_q_schedule")
LIVE = ("tenants_policy", "tenants_apikey", "tenants_member", "tenants_invitation", "workflows_definition")


def test_a_tenant_comes_back_as_it_was(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    before, tasks = hashes(tenant), rows(TASKS, tenant.id)
    file = export(tenant, tmp_path)
    claim_of(tenant)
    end(leased(tenant))
    start(tenant, key="second")
    for (waiting,) in rows("select id from workflows_task where tenant_id = %s and state = 'waiting'", tenant.id):
        cancel(tenant_id=tenant.id, task_id=waiting, principal=PRINCIPAL)
    freeze(tenant)
    assert restore(tenant, file)["tasks"] == {"gone": 1, "back": 0, "again": 8 - 2, "leased": 1}
    assert rows(TASKS, tenant.id) == tasks
    after = hashes(tenant)
    assert {table: after[table] for table in REPLACED} == {table: before[table] for table in REPLACED}
    assert rows("select distinct worker, lease_expires_at from workflows_task") == [(None, None)]
    assert_counters_true()
    diagnosis = {finding["check"]: finding for finding in ductor_process("doctor", "--json").document["findings"]}
    assert {diagnosis[check]["verdict"] for check in ("counters", "admission", "faults", "claims", "leases")} == {"ok"}
    unfreeze(tenant)
    end(claim_of(tenant))
    assert_counters_true()
    states = rows("select state, count(*) from workflows_task group by 1 order by 1")
    assert states == [("completed", 6), ("waiting", 2)]


def test_the_commands_export_try_and_restore(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    end(leased(tenant))
    file = str(tmp_path / "acme.zip")
    made = ductor("tenants", "export", "acme", "--to", file, "--reason", "drill", "--json")
    assert (made.code, made.err, made.document["rows"]["workflows_task"]) == (0, "", 8)
    assert rows("select reason from tenants_act where act = 'tenant.export'") == [("drill",)]
    early = ductor("tenants", "restore", "acme", "--from", file, "--reason", "too early", "--json")
    assert (early.code, early.out, json.loads(early.err)["error"]["code"]) == (3, "", "tenant_not_frozen")
    freeze(tenant)
    owner().execute("delete from workflows_step where tenant_id = %s", [tenant.id])
    before = hashes(tenant)
    tried = ductor("tenants", "restore", "acme", "--from", file, "--dry-run")
    assert (tried.code, "workflows_step" in tried.out) == (0, True)
    assert hashes(tenant) == before
    done = ductor("tenants", "restore", "acme", "--from", file, "--reason", "drill", "--json")
    assert (done.code, done.err) == (0, "")
    table = {found["table"]: found for found in done.document["tables"]}
    assert [table["workflows_step"][name] for name in ("rule", "live", "in_file", "taken_out", "put_in")] == [
        "replace",
        0,
        3,
        0,
        3,
    ]
    assert rows("select count(*) from workflows_step") == [(3,)]


def test_wrong_usage(tmp_path: Path) -> None:
    build_tenant("acme")
    file = tmp_path / "a.zip"
    file.write_text("no zip")
    assert ductor("tenants", "restore", "nobody", "--from", str(file), "--reason", "x").code == 4
    for wrong in (("--from", str(file)), ("--from", str(tmp_path / "gone"), "--reason", "x"), ("--reason", "x")):
        assert ductor("tenants", "restore", "acme", *wrong).code == 2
    assert ductor("tenants", "export", "acme").code == 2
    assert rows("select count(*) from tenants_act where act in ('tenant.export', 'tenant.restore')") == [(0,)]


def test_the_file_is_private_and_holds_every_table_of_one_moment(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    build_worked_tenant("globex")
    file = export(tenant, tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    held = members(file)
    assert b"globex" not in b"".join(held.values())
    assert held["workflows_task.copy"].count(b"\n") == 8
    assert held["workflows_step.copy"].count(b"\n") == 3
    acts = rows("select count(*) from tenants_act where tenant_id = %s and act = 'tenant.export'", tenant.id)
    assert acts == [(1,)]
    assert b"tenant.export" in held["tenants_act.copy"]


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    tenant = build_tenant("acme")
    file = tmp_path / "tenant.zip"
    file.write_text("another's")
    ran = ductor("tenants", "export", tenant.slug, "--to", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert file.read_text() == "another's"
    assert rows("select count(*) from tenants_act where act = 'tenant.export'") == [(0,)]
    assert ductor("tenants", "export", tenant.slug, "--to", str(tmp_path / "nowhere" / "a.zip")).code == 1


def test_no_write_of_a_worker_of_before_fits_after_a_restore(tmp_path: Path) -> None:
    """Not even of a task that one restore took out and the next one brings back under the same worker's name."""
    tenant = build_tenant("acme")
    empty = export(tenant, tmp_path, "empty.zip")
    start(tenant)
    old: list[Claim] = []
    for turn in range(4):
        (claimed,) = claim_of(tenant, 1)
        assert finish(outcomes=[Outcome(claimed, "retry")]) == set()
        old.append(claimed)
        if turn == 1:
            recent = export(tenant, tmp_path, "recent.zip")
    freeze(tenant)
    tokens = [restore(tenant, file)["token"] for file in (empty, recent, recent)]
    unfreeze(tenant)
    assert tokens == [old[-1].token + 1, old[-1].token + 2, old[-1].token + 3]
    assert rows("select token from workflows_task") == [(tokens[-1],)]
    (fresh,) = claim_of(tenant, 1)
    assert (fresh.task_id, fresh.token) == (old[0].task_id, tokens[-1] + 1)
    assert finish(outcomes=[Outcome(claim, "completed") for claim in old]) == set(old)
    assert heartbeat(claims=old) == dict.fromkeys(old, "lost")


def test_limits_freezes_keys_and_members_stay_as_they_are_now(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    file = export(tenant, tmp_path)
    (key,) = rows("select id from tenants_apikey where tenant_id = %s", tenant.id)
    end(leased(tenant))
    with as_role("operator"):
        revoke_api_key(tenant_id=tenant.id, key_id=key[0], principal=PRINCIPAL)
        set_tenant_policy(tenant_id=tenant.id, max_outstanding=3, max_leases=1, principal=PRINCIPAL)
    freeze(tenant)
    before = hashes(tenant)
    restore(tenant, file)
    after = hashes(tenant)
    assert {table: after[table] for table in LIVE} == {table: before[table] for table in LIVE}
    assert rows("select revoked_at is null from tenants_apikey") == [(False,)]
    load = "select outstanding, leased, max_outstanding, max_leases, frozen from tenants_load where tenant_id = %s"
    assert rows(load, tenant.id) == [(6, 0, 3, 1, 3)]
    unfreeze(tenant)
    assert len(claim_of(tenant)) == 1
    assert_counters_true()


def test_the_audit_only_grows(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    file = export(tenant, tmp_path)
    end(leased(tenant))
    freeze(tenant)
    acts = "select id, md5(a::text) from tenants_act a where tenant_id = %s order by at"
    before = rows(acts, tenant.id)
    document = restore(tenant, file)
    assert rows(acts, tenant.id)[: len(before)] == before
    (restored,) = rows(
        "select reason, principal ->> 'kind', after from tenants_act where tenant_id = %s and act = 'tenant.restore'",
        tenant.id,
    )
    assert restored[:2] == ("drill", "command")
    assert (restored[2]["sha256"], restored[2]["token"]) == (document["sha256"], document["token"])
    assert restored[2]["tables"]["workflows_task"] == [8, 8]
    assert len(rows(acts, tenant.id)) == len(before) + 1


def test_acts_that_the_platform_lost_come_back(tmp_path: Path) -> None:
    tenant = build_tenant("acme")
    file = export(tenant, tmp_path)
    acts = "select md5(a::text) from tenants_act a where tenant_id = %s order by 1"
    before = rows(acts, tenant.id)
    freeze(tenant)
    owner().execute("delete from tenants_act where tenant_id = %s and act <> 'tenant.freeze'", [tenant.id])
    restore(tenant, file)
    assert set(before) < set(rows(acts, tenant.id))
    assert len(rows(acts, tenant.id)) == len(before) + 2


def test_a_turn_loses_nothing_and_gains_nothing_in_the_fair_order(tmp_path: Path) -> None:
    tenant, other = build_worked_tenant("acme"), build_tenant("globex")
    file = export(tenant, tmp_path)
    end(leased(tenant))
    for _ in range(20):
        start(other, 50)
        end(claim_of(other))
    freeze(tenant)
    key = "select t.key >= tenants_queue_clock('default'), t.key from tenants_turn t where tenant_id = %s"
    ((ahead, was),) = rows(key, tenant.id)
    assert not ahead
    restore(tenant, file)
    ((ahead, now),) = rows(key, tenant.id)
    assert ahead
    assert now > was


def test_children_come_back_after_their_parents(tmp_path: Path) -> None:
    """A child is put in only where its parent stands; here it comes first, by id and by place."""
    tenant = build_tenant("acme")
    last, middle, root = start(tenant, 3)
    child = """update workflows_task set parent_run_id = %s, root_run_id = %s, nesting_depth = %s
      where tenant_id = %s and id = %s"""
    owner().execute(child, [middle, root, 2, tenant.id, last])
    owner().execute(child, [root, root, 1, tenant.id, middle])
    # An updated row moves behind the others.
    owner().execute("update workflows_task set priority = 1 where tenant_id = %s and id = %s", [tenant.id, root])
    lineage = (
        "select id, parent_run_id, root_run_id, nesting_depth from workflows_task where tenant_id = %s order by id"
    )
    before = rows(lineage, tenant.id)
    assert [row[3] for row in before] == [2, 1, 0]
    file = export(tenant, tmp_path)
    freeze(tenant)
    restore(tenant, file)
    assert rows(lineage, tenant.id) == before


def test_schedules_and_results_of_django_q2_come_back(tmp_path: Path) -> None:
    tenant, other = build_tenant("acme"), build_tenant("globex")
    insert = """insert into django_q_schedule (tenant_id, name, func, schedule_type, repeats, next_run)
      values (%s, %s, 'shop.tasks.ship', 'D', -1, ductor_now() + interval '1 day')"""
    result = """insert into django_q_task (tenant_id, id, name, func, started, stopped, success, attempt_count)
      values (%s, %s, 'n', 'shop.tasks.ship', ductor_now(), ductor_now(), true, 1)"""
    for one in (tenant, other):
        owner().execute(insert, [one.id, "nightly"])
        owner().execute(result, [one.id, "before"])
    before, others = hashes(tenant), hashes(other)
    file = export(tenant, tmp_path)
    owner().execute("delete from django_q_schedule where tenant_id = %s", [tenant.id])
    owner().execute(insert, [tenant.id, "hourly"])
    owner().execute(result, [tenant.id, "after"])
    freeze(tenant)
    restore(tenant, file)
    q2 = ("django_q_schedule", "django_q_task")
    assert [hashes(tenant)[table] for table in q2] == [before[table] for table in q2]
    assert hashes(other) == others
