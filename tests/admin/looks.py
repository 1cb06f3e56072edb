"""What tests of the console look at behind the curtain, inside the surface's own process."""

from typing import Any

from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session

from tenants.people.operators import remove_operator
from tenants.queries import get_tenant
from tenants.store import query


def standing_of(slug: str) -> list[Any]:
    """Return the state of the tenant's waiting task, when its key was revoked, and how many members it has."""
    tenant_id = get_tenant(slug=slug).id
    [[state]] = query(
        "select state from workflows_task where tenant_id = %s and due_at > created_at + interval '1 minute'",
        [tenant_id],
    )
    [[revoked]] = query("select revoked_at from tenants_apikey where tenant_id = %s", [tenant_id])
    members = query("select 1 from tenants_member where tenant_id = %s", [tenant_id])
    return [state, revoked, len(members)]


def shut_out(email: str) -> None:
    """Remove an operator, as the command does."""
    remove_operator(email=email)


def age_doors(seconds: int) -> None:
    """Let every session's open doors shut so much earlier."""
    for row in Session.objects.all():
        session = SessionStore(row.session_key)
        if opened := session.get("ductor_opened"):
            session["ductor_opened"] = {key: until - seconds for key, until in opened.items()}
            session.save()
