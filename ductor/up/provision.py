"""`python -m ductor.up.provision`: the demo's tenants and a key for each, printed as one JSON object.

Run by `up` in the owner's role: tenants are made by nobody else.
"""

import json
import os
import sys
from dataclasses import dataclass

KEY_SCOPES = frozenset({"tasks:read", "tasks:write"})


@dataclass(frozen=True)
class DemoTenant:
    """A tenant of the demo, its policy and how many files it audits."""

    slug: str
    max_outstanding: int
    max_leases: int
    files: int


TENANTS = (DemoTenant("acme", 5000, 20, 2000), DemoTenant("globex", 1000, 20, 20))


def provision() -> dict[str, str]:
    """Make the tenants that are missing and a new key for each; return slug → key."""
    from django.db import transaction

    from tenants.errors import TenantNotFound
    from tenants.keys import create_api_key
    from tenants.policy import set_tenant_policy
    from tenants.principals import Principal
    from tenants.provisioning import create_tenant
    from tenants.queries import get_tenant

    principal = Principal.command()
    keys: dict[str, str] = {}
    for demo in TENANTS:
        try:
            tenant = get_tenant(slug=demo.slug)
        except TenantNotFound:
            with transaction.atomic():
                tenant = create_tenant(slug=demo.slug, name=demo.slug.capitalize(), principal=principal)
                set_tenant_policy(
                    tenant_id=tenant.id,
                    max_outstanding=demo.max_outstanding,
                    max_leases=demo.max_leases,
                    principal=principal,
                    reason="demo",
                )
        _, keys[demo.slug] = create_api_key(tenant_id=tenant.id, name="demo", scopes=KEY_SCOPES, principal=principal)
    return keys


def main() -> int:
    """Print the keys; 1 and a line on stderr if a tenant can't be made."""
    os.environ["DUCTOR_ROLE"] = "owner"
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ductor.settings")
    import django

    django.setup()
    from tenants.errors import DuctorError

    try:
        keys = provision()
    except DuctorError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    print(json.dumps(keys))
    return 0


if __name__ == "__main__":
    sys.exit(main())
