"""Tenants with something of everything in them, each thing carrying the tenant's own mark."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tenants.identity import new_id
from tenants.invitations import accept_invitation, invite
from tenants.keys import create_api_key
from tenants.queries import TenantView
from tests.builders import PRINCIPAL, build_tenant, claim, start
from tests.database import as_role
from tests.surfaces import Answer, Visitor
from workflows.claims import Outcome, StepRecord, finish, record_steps


@dataclass(frozen=True)
class Furnished:
    """One tenant, the mark in all that is its own, and the ids of its things."""

    tenant: TenantView
    mark: str
    task_id: UUID
    waiting_id: UUID
    key_id: UUID
    member_id: UUID
    invitation_id: UUID

    @property
    def path(self) -> str:
        """Where its pages begin."""
        return f"/admin/t/{self.tenant.slug}/"


def furnish(slug: str, mark: str = "") -> Furnished:
    """Make a tenant with an ended task of one step, a waiting one, a key, a member, an invitation, and acts of each."""
    mark = mark or f"mark-{slug}"
    tenant = build_tenant(slug)
    (task_id,) = start(tenant, key=f"{mark}-key", input={mark: mark}, workflow="order-review")
    (task,) = claim(1)
    now = datetime.now(UTC)
    record_steps(records=[StepRecord(task.claim, "ship", 1, "completed", {"step": mark}, None, now, now)])
    finish(outcomes=[Outcome(task.claim, "failed", {"out": mark}, error={"class": "Odd", "message": mark})])
    (waiting_id,) = start(tenant, input={mark: mark}, delay_seconds=600)
    with as_role("operator"):
        key, _ = create_api_key(tenant_id=tenant.id, name="ci", scopes=["tasks:read"], principal=PRINCIPAL, reason=mark)
        _, token = _invite(tenant, f"{slug}-member@example.com")
        invitation, _ = _invite(tenant, f"{slug}-guest@example.com")
    with as_role("web"):
        address = f"{slug}-member@example.com"
        member = accept_invitation(token=token, person_id=new_id(), name=mark, verified=[address])
    return Furnished(tenant, mark, task_id, waiting_id, key.id, member.id, invitation.id)


def _invite(tenant: TenantView, email: str) -> Any:
    return invite(tenant_id=tenant.id, email=email, role="owner", principal=PRINCIPAL)


def open_door(visitor: Visitor, slug: str, reason: str = "a support case") -> Answer:
    """Open a tenant to an operator's session."""
    answer = visitor.post(f"/admin/t/{slug}/open/", {"reason": reason, "next": ""})
    assert answer.status == 302, answer.text
    return answer
