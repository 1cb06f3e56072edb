"""Every verb that changes something leaves one act: who, what, why, in which request, before and after (D17).

The list of verbs is the architecture's own, which a walk over the code keeps whole: a new verb stands here as well, as
one that is audited, as a read, or with the reason why it leaves no act.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tenants.identity import SYSTEM_TENANT_ID, new_id
from tenants.invitations import accept_invitation, invite, revoke_invitation
from tenants.keys import create_api_key, revoke_api_key
from tenants.members import change_role, remove_member
from tenants.people import operators
from tenants.policy import set_freeze, set_own_policy, set_tenant_policy
from tenants.principals import Principal
from tenants.provisioning import create_tenant
from tenants.queries import TenantView
from tenants.queues import create_queue
from tenants.visits import note_visit, open_tenant
from tests.architecture.test_verbs import VERBS
from tests.builders import PRINCIPAL, build_tenant, rows, start
from tests.database import as_role, owner
from tests.people.signing import join
from workflows.cancelling import cancel
from workflows.faults import clear_fault

READS = ("get_", "list_", "find_", "count_", "compare_", "last_")
ENGINE = "a machine's move: what it did stands in the task's row and its steps"
STARTS = "a task is its own record: its origin names source, principal, behind and request"
SILENT = {
    "tenants.audit.record": "writes the act itself",
    "tenants.audit.record_system": "writes the act itself",
    "tenants.restoring.hold_still": "a part of `ductor tenants restore`, which leaves tenant.restore",
    "workflows.restoring.prepare_tasks": "a part of `ductor tenants restore`",
    "workflows.restoring.recount": "a part of `ductor tenants restore`",
    "workflows.admission.enqueue": STARTS,
    "workflows.admission.enqueue_one": STARTS,
    "workflows.starting.start_task": STARTS,
    "workflows.starting.start_tasks": STARTS,
    "workflows.registrations.ensure_definition": "follows from the code that is installed; the row is immutable",
    "workflows.claims.finish": ENGINE,
    "workflows.claims.heartbeat": ENGINE,
    "workflows.claims.record_steps": ENGINE,
    "workflows.claims.release": ENGINE,
    "workflows.claims.take": ENGINE,
    "workflows.clusters.beat": ENGINE,
    "workflows.clusters.leave": ENGINE,
    "workflows.faults.mark_fault": ENGINE,
    "workflows.recovery.recover": ENGINE,
    "workflows.waking.clear_idle": ENGINE,
    "workflows.waking.listen_idle": ENGINE,
}
WHY = "because 17"
REQUEST = "request-of-the-act"


class Ground:
    """A tenant with somebody and something of everything, and who acts on it."""

    def __init__(self) -> None:
        self.tenant: TenantView = build_tenant(max_leases=10)
        _, owner_of = join(self.tenant, "owner")
        self.member, _ = join(self.tenant, "admin")
        self.principal = owner_of.with_request(REQUEST)
        self.key, _ = create_api_key(tenant_id=self.tenant.id, name="k", scopes=["tasks:read"], principal=PRINCIPAL)
        self.invitation, self.token = invite(
            tenant_id=self.tenant.id, email="new@example.com", role="viewer", principal=PRINCIPAL
        )
        [self.task] = start(self.tenant)
        with as_role("operator"):
            operators.create_operator(email="ops@example.com", name="", password="a quiet harbour at dawn")

    def accept(self) -> Any:
        """Accept the invitation as somebody who is no member any more."""
        owner().execute("delete from tenants_member where person_id = %s", (self.principal.id,))
        return accept_invitation(
            token=self.token,
            person_id=UUID(self.principal.id),
            name="",
            verified=["new@example.com"],
            request_id=REQUEST,
        )

    @property
    def by(self) -> dict[str, Any]:
        """The arguments that every verb of a tenant takes."""
        return {"tenant_id": self.tenant.id, "principal": self.principal}

    @property
    def why(self) -> dict[str, Any]:
        """The same, with a reason."""
        return {**self.by, "reason": WHY}


class Case:
    """How a verb is called, the act it leaves, and what that act has."""

    def __init__(
        self,
        act: str,
        call: Callable[[Ground], Any],
        *,
        role: str = "",
        has: str = "",
        system: bool = False,
    ) -> None:
        self.act, self.call, self.role, self.has, self.system = act, call, role, has, system


LIMITS = {"max_outstanding": 7, "max_leases": 3}
OPERATOR = {"email": "ops@example.com"}
FRESH = "another harbour at dusk"
AUDITED = {
    "tenants.invitations.accept_invitation": Case("invitation.accept", lambda g: g.accept(), has="after"),
    "tenants.invitations.invite": Case(
        "invitation.create", lambda g: invite(**g.why, email="x@example.com", role="viewer"), has="reason after"
    ),
    "tenants.invitations.revoke_invitation": Case(
        "invitation.revoke", lambda g: revoke_invitation(**g.why, invitation_id=g.invitation.id), has="reason after"
    ),
    "tenants.keys.create_api_key": Case(
        "key.create", lambda g: create_api_key(**g.by, name="x", scopes=["tasks:read"]), has="after"
    ),
    "tenants.keys.revoke_api_key": Case(
        "key.revoke", lambda g: revoke_api_key(**g.why, key_id=g.key.id), has="reason before"
    ),
    "tenants.members.change_role": Case(
        "member.change_role",
        lambda g: change_role(**g.why, member_id=g.member.id, role="viewer"),
        has="reason before after",
    ),
    "tenants.members.remove_member": Case(
        "member.remove", lambda g: remove_member(**g.why, member_id=g.member.id), has="reason before after"
    ),
    "tenants.people.operators.create_operator": Case(
        "operator.create",
        lambda g: operators.create_operator(email="b@example.com", name="", password=FRESH, principal=g.principal),
        role="operator",
        has="after",
        system=True,
    ),
    "tenants.people.operators.remove_operator": Case(
        "operator.remove",
        lambda g: operators.remove_operator(**OPERATOR, principal=g.principal),
        role="operator",
        has="after",
        system=True,
    ),
    "tenants.people.operators.reset_operator": Case(
        "operator.reset",
        lambda g: operators.reset_operator(**OPERATOR, password=FRESH, principal=g.principal),
        role="operator",
        has="after",
        system=True,
    ),
    "tenants.policy.set_freeze": Case(
        "tenant.freeze", lambda g: set_freeze(**g.why, freeze={"claims"}), role="operator", has="reason before after"
    ),
    "tenants.policy.set_own_policy": Case(
        "policy.tighten",
        lambda g: set_own_policy(**g.why, changes={"own_max_leases": 2}, expected=None),
        has="reason before after",
    ),
    "tenants.policy.set_tenant_policy": Case(
        "policy.set", lambda g: set_tenant_policy(**g.why, **LIMITS), role="operator", has="reason before after"
    ),
    "tenants.provisioning.create_tenant": Case(
        "tenant.create",
        lambda g: create_tenant(slug="brand-new", principal=g.principal, reason=WHY),
        role="operator",
        has="reason after",
    ),
    "tenants.queues.create_queue": Case(
        "queue.create",
        lambda g: create_queue(name=f"q{new_id().hex}", principal=g.principal),
        role="owner",
        system=True,
    ),
    "tenants.visits.note_visit": Case("tenant.read", lambda g: note_visit(**g.by, page="task 1"), role="operator"),
    "tenants.visits.open_tenant": Case(
        "tenant.open", lambda g: open_tenant(**g.why), role="operator", has="reason after"
    ),
    "workflows.cancelling.cancel": Case(
        "task.cancel", lambda g: cancel(**g.why, task_id=g.task), has="reason before after"
    ),
    "workflows.faults.clear_fault": Case(
        "turn.clear_fault", lambda g: clear_fault(**g.why, queue="default"), role="operator", has="reason"
    ),
}


def test_every_verb_is_audited_a_read_or_has_a_reason() -> None:
    everything = {f"{module}.{name}" for module, names in VERBS.items() for name in names}
    reads = {name for name in everything if name.rsplit(".", 1)[1].startswith(READS)}
    assert everything - reads == set(AUDITED) | set(SILENT)
    assert not set(AUDITED) & set(SILENT)
    assert not (set(AUDITED) | set(SILENT)) & reads
    assert all(SILENT.values())


def acts() -> list[tuple[Any, ...]]:
    """Every act there is, the newest last."""
    return rows(
        "select tenant_id, act, principal, reason, request_id, before, after, target_kind, target_id from tenants_act"
        " order by at, id"
    )


@pytest.mark.parametrize("name", sorted(AUDITED))
def test_an_audited_verb_leaves_one_act_with_all_that_is_to_be_said(name: str) -> None:
    case, ground = AUDITED[name], Ground()
    before = acts()
    if case.role:
        with as_role(case.role):
            case.call(ground)
    else:
        case.call(ground)
    [(tenant_id, act, principal, reason, request_id, was, now, kind, target)] = acts()[len(before) :]
    assert act == case.act
    assert principal["id"] == ground.principal.id
    assert principal["kind"] == "person"
    assert request_id == REQUEST
    assert reason == (WHY if "reason" in case.has else "")
    assert (was is not None, now is not None) == ("before" in case.has, "after" in case.has), (was, now)
    assert kind and target
    if case.system:
        assert tenant_id == SYSTEM_TENANT_ID
    elif name != "tenants.provisioning.create_tenant":
        assert tenant_id == ground.tenant.id


@pytest.mark.parametrize("name", sorted(AUDITED))
def test_an_act_and_what_it_tells_of_are_one_transaction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the act can't be written, nothing is done."""
    case, ground = AUDITED[name], Ground()
    before = _everything(name)
    owner().execute("alter table tenants_act add constraint no_more check (at < '2000-01-01') not valid")
    try:
        with pytest.raises(Exception, match="no_more"):
            if case.role:
                with as_role(case.role):
                    case.call(ground)
            else:
                case.call(ground)
    finally:
        owner().execute("alter table tenants_act drop constraint no_more")
    assert _everything(name) == before


def _everything(name: str) -> list[tuple[str, Any]]:
    tables = (
        *("tenants_tenant", "tenants_policy", "tenants_load", "tenants_turn", "tenants_apikey", "tenants_act"),
        *("tenants_member", "tenants_invitation", "tenants_queue", "workflows_task", "operators.people_person"),
    )
    known = "select md5(t::text) from {0} t order by 1"
    # Whoever accepts an invitation here was taken out of the tenant first.
    joins = "tenants_member" if name.endswith("accept_invitation") else ""
    return [(table, rows(known.format(table))) for table in tables if table != joins]


def test_a_task_s_origin_names_who_started_it_and_the_person_behind() -> None:
    from workflows.admission import NewTask, enqueue

    tenant = build_tenant()
    by = Principal(kind="key", id=str(new_id()), name="ci", behind="anna@example.com", request_id=REQUEST)
    enqueue(tenant_id=tenant.id, tasks=[NewTask("w", 1, None)], principal=by)
    [(origin,)] = rows("select origin from workflows_task")
    assert origin["principal"] == by.as_json()
    assert origin["request_id"] == REQUEST
