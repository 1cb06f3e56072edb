"""`manage.py ductor members …`"""

import os
from dataclasses import asdict
from typing import Annotated
from uuid import UUID

import typer

from ductor.commands.screen import Json, Reason, say, show
from ductor.invitation_mail import invitation_link, mail_invitation
from tenants.errors import MemberNotFound
from tenants.identity import parse_id
from tenants.invitations import invite as invite_address
from tenants.invitations import list_invitations, parse_address
from tenants.members import FIRST, MemberView, list_members, remove_member
from tenants.permissions import Role
from tenants.principals import Principal
from tenants.queries import MAX_PAGE, get_tenant

app = typer.Typer(help="People who act in a tenant, and invitations.", no_args_is_help=True)

Slug = Annotated[str, typer.Argument(help="The tenant's slug.")]
_COLUMNS = ("id", "email", "name", "role", "joined_at")
_INVITATIONS = ("id", "email", "role", "created_at", "expires_at", "used_at", "revoked_at")


@app.command()
def invite(
    tenant: Slug,
    email: Annotated[str, typer.Argument(help="The address to invite.")],
    role: Annotated[Role, typer.Option(help="What the person will be.")],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Invite an address: how a tenant gets its first owner.

    The link is mailed where DUCTOR_EMAIL_URL names a mail server. Without one it is printed: pass it on to that
    person alone, for whoever opens it is taken for the owner of the address.
    """
    owner = get_tenant(slug=tenant)
    invitation, token = invite_address(
        tenant_id=owner.id, email=email, role=role.value, principal=Principal.command(), reason=reason
    )
    document = asdict(invitation) | {"tenant": tenant}
    if not os.environ.get("DUCTOR_EMAIL_URL"):
        show(document | {"link": invitation_link(token)})
        say(f"No mail server is named: pass the link on to {invitation.email} alone. It works once, within seven days.")
        return
    mailed = mail_invitation(invitation=invitation, token=token, tenant=owner.name or owner.slug)
    show(document | {"mailed": mailed})
    say(f"A link was mailed to {invitation.email}." if mailed else "The mail did not go out; the log says why.")


@app.command("list")
def list_all(tenant: Slug, as_json: Json = False) -> None:
    """List a tenant's members (at most 1,000), in the order of joining."""
    members = [asdict(member) for member in list_members(tenant_id=get_tenant(slug=tenant).id, limit=MAX_PAGE)]
    show({"members": members}, rows="members", columns=_COLUMNS)


@app.command()
def invitations(tenant: Slug, as_json: Json = False) -> None:
    """List a tenant's newest hundred invitations; none shows its link."""
    found = [asdict(invitation) for invitation in list_invitations(tenant_id=get_tenant(slug=tenant).id)]
    show({"invitations": found}, rows="invitations", columns=_INVITATIONS)


@app.command()
def remove(
    tenant: Slug,
    member: Annotated[str, typer.Argument(help="The member's address, or its id from `members list`.")],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Remove a member, at once and on every process, with the keys that it made."""
    tenant_id = get_tenant(slug=tenant).id
    found = _find(tenant_id, member)
    revoked = remove_member(tenant_id=tenant_id, member_id=found.id, principal=Principal.command(), reason=reason)
    show({"tenant": tenant, "id": found.id, "email": found.email, "revoked_keys": revoked})


def _find(tenant_id: UUID, named: str) -> MemberView:
    """Return the member with this address or id, looking through the members page by page."""
    wanted_id = None if "@" in named else parse_id(named)
    address = parse_address(named) if wanted_id is None else ""
    after = FIRST
    while page := list_members(tenant_id=tenant_id, after=after, limit=MAX_PAGE):
        for member in page:
            if member.id == wanted_id or member.email == address:
                return member
        after = page[-1].id
    raise MemberNotFound(f"There is no member {named!r}; `manage.py ductor members list` shows all.")
