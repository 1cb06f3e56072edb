"""Members and invitations: who acts in the tenant, and as what."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from ductor.invitation_mail import mail_invitation
from ductor.pages.access import TenantPage
from ductor.pages.forms import InviteForm, ReasonForm
from tenants.errors import Conflict, Forbidden, Invalid
from tenants.identity import parse_id
from tenants.invitations import InvitationView, invite, list_invitations, revoke_invitation
from tenants.member_keys import count_keys
from tenants.members import FIRST, change_role, get_member, list_members, remove_member
from tenants.permissions import Permission, Role

PAGE = 100
INVITATIONS = 50


class MemberList(TenantPage):
    """The tenant's members and invitations, and a form to invite somebody."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.MEMBERS_READ, "POST": Permission.MEMBERS_WRITE}
    place = "app-members"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show members and invitations."""
        return self._show(self._form())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Invite an address. The link goes there by mail and is shown to nobody here."""
        form = self._form(request.POST)
        if not form.is_valid():
            return self._show(form, status=400)
        email, role = form.cleaned_data["email"], form.cleaned_data["role"]
        try:
            invitation, token = invite(tenant_id=self.tenant_id, email=email, role=role, principal=self.principal)
        except (Invalid, Forbidden) as refused:
            form.add_error(None, refused.message)
            return self._show(form, status=refused.http_status)
        if mail_invitation(invitation=invitation, token=token, tenant=self.authenticated.slug):
            messages.success(request, f"A link was mailed to {invitation.email}.")
        else:
            messages.error(
                request, f"The mail to {invitation.email} did not go out. Take the invitation back, try again."
            )
        return redirect("app-members")

    def _form(self, *data: Any) -> InviteForm:
        return InviteForm(*data, roles=self._roles())

    def _roles(self) -> list[str]:
        """Return the roles that the visitor may give: owners are made by owners."""
        return [role.value for role in Role if role != Role.OWNER or self.may(Permission.OWNERS_WRITE)]

    def _show(self, form: InviteForm, *, status: int = 200) -> HttpResponse:
        try:
            after = UUID(self.request.GET["after"]) if "after" in self.request.GET else FIRST
        except ValueError:
            raise BadRequest from None
        found = list_members(tenant_id=self.tenant_id, after=after, limit=PAGE + 1)
        may_write = self.may(Permission.MEMBERS_WRITE)
        owners_too = self.may(Permission.OWNERS_WRITE)
        context = {
            "members": [(one, may_write and (owners_too or one.role != Role.OWNER)) for one in found[:PAGE]],
            "more": f"{self.request.path}?after={found[PAGE - 1].id}" if len(found) > PAGE else "",
            "first": self.request.path if after != FIRST else "",
            "invitations": _invitations(self.tenant_id) if may_write else [],
            "may_write": may_write,
            "roles": self._roles(),
            "me": self.principal.id,
            "form": form,
        }
        return self.page("app/members.html", context, status=status)


def _invitations(tenant_id: UUID) -> list[tuple[InvitationView, str]]:
    """Return the newest invitations, each with how it stands."""
    now = datetime.now(UTC)
    found = list_invitations(tenant_id=tenant_id, limit=INVITATIONS)
    return [(one, _standing(one, now)) for one in found]


def _standing(invitation: InvitationView, now: datetime) -> str:
    if invitation.used_at:
        return "accepted"
    if invitation.revoked_at:
        return "taken back"
    return "open" if invitation.expires_at > now else "expired"


class MemberRole(TenantPage):
    """Gives a member another role."""

    permissions: ClassVar[Mapping[str, Permission]] = {"POST": Permission.MEMBERS_WRITE}

    def post(self, request: HttpRequest, member_id: str) -> HttpResponse:
        """Change the role, in force at the member's next request."""
        parsed, role = parse_id(member_id), request.POST.get("role", "")
        try:
            member = change_role(tenant_id=self.tenant_id, member_id=parsed, role=role, principal=self.principal)
        except (Conflict, Forbidden, Invalid) as refused:
            messages.error(request, refused.message)
        else:
            messages.success(request, f"{member.email} is {member.role} from the next request on.")
        return redirect("app-members")


class MemberRemove(TenantPage):
    """Removes a member, after saying what goes with it."""

    permissions: ClassVar[Mapping[str, Permission]] = {
        "GET": Permission.MEMBERS_WRITE,
        "POST": Permission.MEMBERS_WRITE,
    }
    place = "app-members"

    def get(self, request: HttpRequest, member_id: str) -> HttpResponse:
        """Ask, and say how many keys are revoked with the member."""
        return self._ask(parse_id(member_id), ReasonForm())

    def post(self, request: HttpRequest, member_id: str) -> HttpResponse:
        """Remove the member and the keys it made."""
        parsed, form = parse_id(member_id), ReasonForm(request.POST)
        if not form.is_valid():
            return self._ask(parsed, form, status=400)
        reason = form.cleaned_data["reason"]
        try:
            revoked = remove_member(tenant_id=self.tenant_id, member_id=parsed, principal=self.principal, reason=reason)
        except (Conflict, Forbidden) as refused:
            messages.error(request, refused.message)
        else:
            messages.success(request, f"Removed. Keys revoked with the member: {revoked}.")
        return redirect("app-members")

    def _ask(self, member_id: UUID, form: ReasonForm, *, status: int = 200) -> HttpResponse:
        member = get_member(tenant_id=self.tenant_id, member_id=member_id)
        keys = count_keys(tenant_id=self.tenant_id, member_id=member_id)
        return self.page("app/member_remove.html", {"member": member, "keys": keys, "form": form}, status=status)


class InvitationRevoke(TenantPage):
    """Takes an invitation back."""

    permissions: ClassVar[Mapping[str, Permission]] = {"POST": Permission.MEMBERS_WRITE}

    def post(self, request: HttpRequest, invitation_id: str) -> HttpResponse:
        """Revoke it and show the members."""
        revoke_invitation(tenant_id=self.tenant_id, invitation_id=parse_id(invitation_id), principal=self.principal)
        messages.success(request, "The invitation's link opens nothing any more.")
        return redirect("app-members")
