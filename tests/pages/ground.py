"""Two tenants full of things that can be told apart, and browsers of people in them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.test import Client
from django.urls import reverse

from ductor.pages import urls
from tenants.invitations import InvitationView, invite
from tenants.keys import create_api_key
from tenants.members import MemberView
from tenants.principals import Principal
from tenants.queries import ApiKeyView, TenantView
from tests.builders import build_tenant, claim, complete, start
from tests.people.signing import browser, build_person, choose, join
from workflows.cancelling import cancel
from workflows.claims import StepRecord, record_steps


@dataclass(frozen=True)
class Furnished:
    """A tenant with something on every page; each text in it holds its marker."""

    tenant: TenantView
    marker: str
    task: UUID
    queued: UUID
    key: ApiKeyView
    member: MemberView
    invitation: InvitationView
    owner: Principal


def furnish(marker: str) -> Furnished:
    """Make a tenant with tasks, steps, a key, members, an invitation and acts."""
    tenant = build_tenant(f"tenant-{marker}")
    _, owner = join(tenant, "owner", build_person(f"owner-{marker}@example.com"))
    member, _ = join(tenant, "viewer", build_person(f"viewer-{marker}@example.com"))
    payload = {"note": f"input-{marker}"}
    [task] = start(tenant, workflow=f"work-{marker}", key=f"key-{marker}", input=payload)
    [claimed] = claim(limit=1)
    now = datetime.now(UTC)
    record_steps(records=[StepRecord(claimed.claim, f"step-{marker}", 1, "completed", f"out-{marker}", None, now, now)])
    complete([claimed], {"result": f"output-{marker}"})
    [queued, doomed] = start(tenant, 2, workflow=f"work-{marker}", input=payload)
    cancel(tenant_id=tenant.id, task_id=doomed, principal=owner, reason=f"reason-{marker}")
    key, _ = create_api_key(tenant_id=tenant.id, name=f"name-{marker}", scopes=["tasks:read"], principal=owner)
    invitation, _ = invite(tenant_id=tenant.id, email=f"new-{marker}@example.com", role="viewer", principal=owner)
    return Furnished(tenant, marker, task, queued, key, member, invitation, owner)


def visitor(tenant: TenantView, role: str, email: str = "", **more: Any) -> Client:
    """Return a browser in which a new member of the tenant has signed in and chosen it."""
    person = build_person(email)
    join(tenant, role, person)
    client = browser(**more)
    # Without the form of signing in, which has tests of its own.
    client.force_login(person, backend="allauth.account.auth_backends.AuthenticationBackend")
    choose(client, tenant.id)
    return client


def addresses(of: Furnished) -> dict[str, str]:
    """Return every tenant page's name with an address that leads to something of this tenant."""
    values = {
        "task_id": of.task,
        "step": f"step-{of.marker}",
        "attempt": 1,
        "part": "input",
        "key_id": of.key.id,
        "member_id": of.member.id,
        "invitation_id": of.invitation.id,
    }
    found = {}
    for pattern in urls.urlpatterns:
        names = pattern.pattern.converters
        if pattern.name not in BEFORE_A_TENANT:
            found[pattern.name] = reverse(pattern.name, kwargs={name: values[name] for name in names})
    return found


# Pages that a person opens before acting for a tenant; they have tests of their own.
BEFORE_A_TENANT = {"app-choose", "app-invitation", "app-invitation-link"}
