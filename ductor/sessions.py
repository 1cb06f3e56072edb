"""What a person's session says of the tenant it acts for; it is a wish, checked against the membership each time."""

from uuid import UUID

from django.http import HttpRequest

_TENANT = "ductor_tenant"


def choose_tenant(request: HttpRequest, tenant_id: UUID) -> None:
    """Let the session act for a tenant from now on, under a new session key."""
    request.session.cycle_key()
    request.session[_TENANT] = str(tenant_id)


def chosen_tenant(request: HttpRequest) -> UUID | None:
    """Return the tenant that the session chose, or None."""
    chosen = request.session.get(_TENANT)
    try:
        return UUID(chosen) if isinstance(chosen, str) else None
    except ValueError:
        return None
