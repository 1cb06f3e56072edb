"""S26: one tenant comes back from its backup, and nobody else's rows move."""

import stat
from pathlib import Path

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
from workflows.claims import Outcome, finish, heartbeat

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
    ran = restore(tenant, file)
    assert (ran.code, ran.err) == (0, "")
    assert ran.document["tasks"] == {"gone": 1, "back": 0, "again": 8 - 2, "leased": 1}
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
    tenant = build_worked_tenant("acme")
    early = export(tenant, tmp_path, "early.zip")
    (late,) = start(tenant, priority=90)
    (claimed,) = claim_of(tenant, 1)
    assert claimed.task_id == late
    assert finish(outcomes=[Outcome(claimed, "retry")]) == set()
    old = [claimed]
    for _ in range(3):
        (again,) = claim_of(tenant, 1)
        assert again.task_id == late
        assert finish(outcomes=[Outcome(again, "retry")]) == set()
        old.append(again)
    end(leased(tenant))
    recent = export(tenant, tmp_path, "recent.zip")
    freeze(tenant)
    tokens = [restore(tenant, file).document["token"] for file in (early, recent)]
    unfreeze(tenant)
    assert tokens[1] > tokens[0] > max(claim.token for claim in old)
    assert rows("select distinct token from workflows_task") == [(tokens[1],)]
    (fresh,) = claim_of(tenant, 1)
    assert (fresh.task_id, fresh.token) == (late, tokens[1] + 1)
    assert finish(outcomes=[Outcome(claim, "completed") for claim in old]) == set(old)
    assert heartbeat(claims=old) == dict.fromkeys(old, "lost")


def test_limits_freezes_keys_and_members_stay_as_they_are_now(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    file = export(tenant, tmp_path)
    (key,) = rows("select id from tenants_apikey where tenant_id = %s", tenant.id)
    end(leased(tenant))
    assert ductor("keys", "revoke", str(key[0]), "--tenant", "acme", "--reason", "leaked").code == 0
    with as_role("operator"):
        set_tenant_policy(tenant_id=tenant.id, max_outstanding=3, max_leases=1, principal=PRINCIPAL)
    freeze(tenant)
    before = hashes(tenant)
    assert restore(tenant, file).code == 0
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
    document = restore(tenant, file).document
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
    assert restore(tenant, file).code == 0
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
    assert restore(tenant, file).code == 0
    ((ahead, now),) = rows(key, tenant.id)
    assert ahead
    assert now > was
