"""Making tenants: an act of the owner's process and of operators, never of the tenant surface (ADR 0015)."""

from tenants.audit import record
from tenants.errors import IdentityInvalid, SlugTaken
from tenants.identity import new_id, parse_slug
from tenants.models import ServiceClass
from tenants.principals import Principal
from tenants.queries import TenantView, get_tenant
from tenants.scope import scope_of
from tenants.store import call

MAX_NAME = 200


def create_tenant(
    *,
    slug: str,
    name: str = "",
    service_class: str = ServiceClass.STANDARD.value,
    principal: Principal,
    reason: str = "",
) -> TenantView:
    """Make a tenant. It admits nothing until an operator sets its policy.

    Raises:
        IdentityInvalid: the slug, the display name or the service class breaks its rule.
        SlugTaken: a tenant has, or had, this slug.
    """
    parse_slug(slug)
    if service_class not in ServiceClass.values or service_class == ServiceClass.SYSTEM:
        known = ", ".join(value for value in ServiceClass.values if value != ServiceClass.SYSTEM)
        raise IdentityInvalid(f"A service class is one of {known}; got {service_class!r}.", seen=service_class[:64])
    if len(name) > MAX_NAME or not name.isprintable():
        raise IdentityInvalid(f"A display name is at most {MAX_NAME} printable characters.", seen=name[:64])
    tenant_id = new_id()
    with scope_of(tenant_id):
        ((made,),) = call("tenants_provision", tenant_id, slug, name, service_class)
        if not made:
            raise SlugTaken(f"The slug {slug!r} is taken or was used before; choose another one.", slug=slug)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="tenant.create",
            target_kind="tenant",
            target_id=str(tenant_id),
            reason=reason,
            after={"slug": slug, "name": name, "service_class": service_class},
        )
    return get_tenant(slug=slug)
