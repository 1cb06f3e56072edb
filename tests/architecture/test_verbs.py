"""Every public verb and read × each id argument × {another tenant's, a random one}: equal refusals.

A verb without a row in the matrix fails, and so does a row without a verb.
"""

import inspect
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tenants.errors import DuctorError
from tenants.queries import TenantView
from tenants.scope import attach
from tests.builders import PRINCIPAL, assert_counters_true, build_tenant, claim, rows, start
from tests.database import as_role
from workflows.claims import Claim, ClaimedTask, Outcome, StepRecord

VERBS = {
    "tenants.acts": ["list_acts"],
    "tenants.audit": ["record", "record_system"],
    "tenants.authentication": ["find_membership", "list_memberships"],
    "tenants.invitations": [
        "accept_invitation",
        "find_invitation",
        "invite",
        "list_invitations",
        "revoke_invitation",
    ],
    "tenants.keys": ["create_api_key", "revoke_api_key"],
    "tenants.member_keys": ["count_keys"],
    "tenants.members": ["change_role", "get_member", "list_members", "remove_member"],
    "tenants.people.operators": ["create_operator", "list_operators", "remove_operator", "reset_operator"],
    "tenants.policy": ["set_freeze", "set_own_policy", "set_tenant_policy"],
    "tenants.provisioning": ["create_tenant"],
    "tenants.queries": ["get_policy", "get_tenant", "list_keys", "list_tenants", "list_usage"],
    "tenants.queues": ["create_queue", "list_queues"],
    "tenants.restoring": ["hold_still", "last_token"],
    "tenants.standings": ["list_near_limit", "list_standings"],
    "tenants.visits": ["note_visit", "open_tenant"],
    "workflows.admission": ["enqueue", "enqueue_one"],
    "workflows.cancelling": ["cancel"],
    "workflows.claims": ["finish", "heartbeat", "record_steps", "release", "take"],
    "workflows.clusters": ["beat", "leave", "list_clusters"],
    "workflows.faults": ["clear_fault", "mark_fault"],
    "workflows.queries": ["get_task", "list_steps", "list_summaries", "list_tasks"],
    "workflows.recovery": ["recover"],
    "workflows.registrations": ["ensure_definition"],
    "workflows.restoring": ["compare_tasks", "prepare_tasks", "recount"],
    "workflows.starting": ["start_task", "start_tasks"],
    "workflows.step_queries": ["get_step", "list_step_summaries"],
    "workflows.waking": ["clear_idle", "listen_idle"],
}
# Keyword-only functions that are no verbs of the store: what a worker process runs, which takes no id of a thing.
NO_VERBS = {"workflows.turns": ["run_turn"], "workflows.wakeup": ["wait"]}
# Verbs that take no id of a thing in a tenant, and why no row of the matrix can be made for them.
WITHOUT_IDS = {
    "tenants.audit.record": "writes a fact about what the verb around it did",
    "tenants.audit.record_system": "writes a fact about the platform",
    "tenants.authentication.find_membership": "asks whether somebody is a member",
    "tenants.authentication.list_memberships": "for one person, before a tenant is known",
    "tenants.invitations.accept_invitation": "by a token of 256 random bits, before the person is in a tenant",
    "tenants.invitations.find_invitation": "by a token of 256 random bits",
    "tenants.invitations.invite": "makes an invitation",
    "tenants.invitations.list_invitations": "names only the tenant",
    "tenants.keys.create_api_key": "makes a key",
    "tenants.people.operators.create_operator": "operators belong to no tenant",
    "tenants.people.operators.list_operators": "operators belong to no tenant",
    "tenants.people.operators.remove_operator": "operators belong to no tenant",
    "tenants.people.operators.reset_operator": "operators belong to no tenant",
    "tenants.policy.set_freeze": "names only the tenant, which the scope checks",
    "tenants.policy.set_own_policy": "names only the tenant",
    "tenants.policy.set_tenant_policy": "names only the tenant",
    "tenants.provisioning.create_tenant": "makes a tenant",
    "tenants.queries.get_policy": "names only the tenant",
    "tenants.queries.get_tenant": "by slug, for operators",
    "tenants.queries.list_tenants": "for operators",
    "tenants.queries.list_usage": "names only the tenant",
    "tenants.queues.create_queue": "queues belong to no tenant",
    "tenants.queues.list_queues": "queues belong to no tenant",
    "tenants.restoring.hold_still": "names only the tenant, which the scope checks",
    "tenants.restoring.last_token": "names only the tenant",
    "tenants.standings.list_near_limit": "for operators",
    "tenants.standings.list_standings": "for operators",
    "tenants.visits.note_visit": "writes a fact about a page that was looked at",
    "tenants.visits.open_tenant": "names only the tenant, which the scope checks",
    "workflows.admission.enqueue": "makes tasks; keys of other tenants are covered in test_row_security",
    "workflows.admission.enqueue_one": "as enqueue",
    "workflows.claims.take": "the fair order names tasks, not the caller",
    "workflows.clusters.beat": "clusters belong to no tenant",
    "workflows.clusters.leave": "clusters belong to no tenant",
    "workflows.clusters.list_clusters": "clusters belong to no tenant",
    "workflows.faults.clear_fault": "names only the tenant",
    "workflows.faults.mark_fault": "names only the tenant",
    "workflows.recovery.recover": "takes no id",
    "workflows.registrations.ensure_definition": "names only the tenant",
    "workflows.restoring.compare_tasks": "names only the tenant",
    "workflows.restoring.prepare_tasks": "names only the tenant, which the scope checks",
    "workflows.restoring.recount": "names only the tenant, which the scope checks",
    "workflows.starting.start_task": "makes a task",
    "workflows.starting.start_tasks": "makes tasks",
    "workflows.waking.clear_idle": "workers belong to no tenant",
    "workflows.waking.listen_idle": "workers belong to no tenant",
}


def stolen(tenant: TenantView, task_id: uuid.UUID) -> Claim:
    return Claim(tenant.id, task_id, "thief", 1)


def record_of(one: Claim) -> StepRecord:
    now = datetime.now(UTC)
    return StepRecord(one, "s", 1, "completed", None, None, now, now)


def verb(name: str) -> Callable[..., Any]:
    module, function = name.rsplit(".", 1)
    return getattr(import_module(module), function)


MATRIX: dict[str, Callable[[TenantView, uuid.UUID], Any]] = {
    "tenants.keys.revoke_api_key": lambda t, i: verb("tenants.keys.revoke_api_key")(
        tenant_id=t.id, key_id=i, principal=PRINCIPAL
    ),
    "tenants.invitations.revoke_invitation": lambda t, i: verb("tenants.invitations.revoke_invitation")(
        tenant_id=t.id, invitation_id=i, principal=PRINCIPAL
    ),
    "tenants.member_keys.count_keys": lambda t, i: verb("tenants.member_keys.count_keys")(tenant_id=t.id, member_id=i),
    "tenants.members.change_role": lambda t, i: verb("tenants.members.change_role")(
        tenant_id=t.id, member_id=i, role="viewer", principal=PRINCIPAL
    ),
    "tenants.members.get_member": lambda t, i: verb("tenants.members.get_member")(tenant_id=t.id, member_id=i),
    "tenants.members.list_members": lambda t, i: verb("tenants.members.list_members")(tenant_id=t.id, after=i),
    "tenants.members.remove_member": lambda t, i: verb("tenants.members.remove_member")(
        tenant_id=t.id, member_id=i, principal=PRINCIPAL
    ),
    "tenants.queries.list_keys": lambda t, i: verb("tenants.queries.list_keys")(tenant_id=t.id, before=i),
    "tenants.acts.list_acts": lambda t, i: verb("tenants.acts.list_acts")(tenant_id=t.id, before=i),
    "workflows.cancelling.cancel": lambda t, i: verb("workflows.cancelling.cancel")(
        tenant_id=t.id, task_id=i, principal=PRINCIPAL
    ),
    "workflows.claims.finish": lambda t, i: verb("workflows.claims.finish")(
        outcomes=[Outcome(stolen(t, i), "completed")]
    ),
    "workflows.claims.heartbeat": lambda t, i: verb("workflows.claims.heartbeat")(claims=[stolen(t, i)]),
    "workflows.claims.record_steps": lambda t, i: verb("workflows.claims.record_steps")(
        records=[record_of(stolen(t, i))]
    ),
    "workflows.claims.release": lambda t, i: verb("workflows.claims.release")(claims=[stolen(t, i)]),
    "workflows.queries.get_task": lambda t, i: verb("workflows.queries.get_task")(tenant_id=t.id, task_id=i),
    "workflows.step_queries.get_step": lambda t, i: verb("workflows.step_queries.get_step")(
        tenant_id=t.id, task_id=i, name="look", attempt=1
    ),
    "workflows.step_queries.list_step_summaries": lambda t, i: verb("workflows.step_queries.list_step_summaries")(
        tenant_id=t.id, task_id=i
    ),
    "workflows.queries.list_steps": lambda t, i: verb("workflows.queries.list_steps")(tenant_id=t.id, task_id=i),
    "workflows.queries.list_summaries": lambda t, i: verb("workflows.queries.list_summaries")(tenant_id=t.id, before=i),
    "workflows.queries.list_tasks": lambda t, i: verb("workflows.queries.list_tasks")(tenant_id=t.id, before=i),
}


def test_every_public_verb_is_listed_and_has_its_row() -> None:
    """Walks every module of the two apps, so that a verb in a new room is found as well."""
    found: dict[str, list[str]] = {}
    rooms = ("tenants", "tenants.people", "workflows")
    for module in [f"{app}.{path.stem}" for app in rooms for path in Path(app.replace(".", "/")).glob("[a-z]*.py")]:
        for name, function in vars(import_module(module)).items():
            if not inspect.isfunction(function) or function.__module__ != module or name.startswith("_"):
                continue
            parameters = inspect.signature(function).parameters.values()
            if all(p.kind is p.KEYWORD_ONLY for p in parameters) and (parameters or name.startswith("list_")):
                found.setdefault(module, []).append(name)
    for module, names in NO_VERBS.items():
        assert found.pop(module) == names, "an exemption that nothing needs"
    assert {module: sorted(names) for module, names in found.items()} == VERBS
    everything = {f"{module}.{name}" for module, names in VERBS.items() for name in names}
    assert everything == set(MATRIX) | set(WITHOUT_IDS)
    assert set(MATRIX) & set(WITHOUT_IDS) == set()


def answer(act: Callable[[TenantView, uuid.UUID], Any], tenant: TenantView, given: uuid.UUID) -> Any:
    """What a caller sees, with the id he gave himself taken out."""
    try:
        seen: Any = act(tenant, given)
    except DuctorError as error:
        seen = (type(error).__name__, error.code, error.http_status, error.message, error.fields, error.retry_after)
    return repr(seen).replace(repr(given), "<id>")


@pytest.mark.parametrize("name", sorted(MATRIX))
@pytest.mark.parametrize("state", ["queued", "leased", "key"])
def test_another_tenants_id_is_answered_like_one_that_never_existed(name: str, state: str) -> None:
    mine, other = build_tenant(), build_tenant()
    (foreign,) = start(other)
    if state == "leased":
        (task,) = claim(worker="thief")
        foreign = task.claim.task_id
    if state == "key":
        foreign = _key_of(other)
    before = _everything_of(other)
    with as_role("operator") if name.startswith("tenants.keys") else attach(mine.id):
        seen = [answer(MATRIX[name], mine, given) for given in (foreign, uuid.uuid4())]
    if name in ("workflows.queries.list_tasks", "workflows.queries.list_summaries", "tenants.acts.list_acts"):
        assert seen == ["[]", "[]"]
    assert seen[0] == seen[1]
    assert _everything_of(other) == before
    assert_counters_true()


def _key_of(tenant: TenantView) -> uuid.UUID:
    from tenants.keys import create_api_key

    with as_role("operator"):
        view, _ = create_api_key(tenant_id=tenant.id, name="k", scopes=["tasks:read"], principal=PRINCIPAL)
    return view.id


def _everything_of(tenant: TenantView) -> list[Any]:
    tables = ("workflows_task", "workflows_step", "tenants_load", "tenants_turn", "tenants_apikey", "tenants_act")
    return [rows(f"select md5(t::text) from {table} t where tenant_id = %s order by 1", tenant.id) for table in tables]


def test_a_claim_of_the_right_task_under_another_tenant_is_stale() -> None:
    mine, other = build_tenant(), build_tenant()
    start(other)
    (task,) = claim(worker="thief")
    forged = Claim(mine.id, task.claim.task_id, "thief", task.claim.token)
    assert verb("workflows.claims.finish")(outcomes=[Outcome(forged, "completed")]) == {forged}
    assert verb("workflows.claims.heartbeat")(claims=[forged]) == {forged: "lost"}
    assert verb("workflows.claims.release")(claims=[forged]) == {forged}
    assert verb("workflows.claims.record_steps")(records=[record_of(forged)]) == {forged}
    assert rows("select state from workflows_task") == [("leased",)]


@pytest.mark.parametrize("change", [{"worker": "other"}, {"token": 2}, {"token": 0}])
def test_i3_b41_each_part_of_a_claim_is_compared(change: dict[str, Any]) -> None:
    tenant = build_tenant()
    start(tenant)
    (task,) = claim(worker="owner")
    forged = Claim(**{**_as_dict(task), **change})
    before = rows("select md5(t::text) from workflows_task t where tenant_id is not null")
    assert verb("workflows.claims.finish")(outcomes=[Outcome(forged, "completed")]) == {forged}
    assert verb("workflows.claims.heartbeat")(claims=[forged]) == {forged: "lost"}
    assert verb("workflows.claims.release")(claims=[forged]) == {forged}
    assert verb("workflows.claims.record_steps")(records=[record_of(forged)]) == {forged}
    assert rows("select md5(t::text) from workflows_task t where tenant_id is not null") == before
    assert_counters_true()


def _as_dict(task: ClaimedTask) -> dict[str, Any]:
    one = task.claim
    return {"tenant_id": one.tenant_id, "task_id": one.task_id, "worker": one.worker, "token": one.token}


@pytest.mark.parametrize("name", ["workflows.cancelling.cancel", "workflows.queries.get_task"])
def test_a_verb_acts_for_the_attached_one(name: str) -> None:
    mine, other = build_tenant(), build_tenant()
    (foreign,) = start(other)
    with attach(mine.id), pytest.raises(DuctorError) as refused:
        MATRIX[name](other, foreign)
    assert refused.value.sqlstate == "TN501"
    assert rows("select state from workflows_task") == [("queued",)]
