"""Acts on one thing of a tenant: cancelling a task, revoking a key or an invitation, removing a member."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from ductor.console.access import opened_act_page, principal_of
from ductor.console.acts import Act, Values, perform
from ductor.console.forms import ReasonForm
from tenants.identity import parse_id
from tenants.invitations import revoke_invitation
from tenants.keys import revoke_api_key
from tenants.member_keys import count_keys
from tenants.members import get_member, remove_member
from tenants.queries import TenantView
from workflows.cancelling import cancel
from workflows.queries import get_task

_METHODS = ["GET", "HEAD", "POST"]
# What a task's cancelling means for whoever has it now.
_CANCELLED_FROM = {
    "queued": "It has not been claimed yet and never will be.",
    "leased": "A worker has it: it learns so at its next heartbeat, and what it still writes is refused.",
    "waiting": "It waits; nothing will wake it.",
}


@require_http_methods(_METHODS)
@opened_act_page
def cancel_page(request: HttpRequest, tenant: TenantView, item: str) -> HttpResponseBase:
    """Cancel a task."""
    task = get_task(tenant_id=tenant.id, task_id=parse_id(item))
    back = reverse("admin:task", args=[tenant.slug, item])
    ended = f"It is {task.state} already: nothing is left to cancel."
    effects = [f"Cancels 1 task of {tenant.slug}: {task.workflow}, {task.id}.", _CANCELLED_FROM.get(task.state, ended)]

    def run(values: Values) -> HttpResponseBase:
        cancel(tenant_id=tenant.id, task_id=task.id, principal=principal_of(request), reason=values["reason"])
        messages.success(request, "The task is cancelled.")
        return HttpResponseRedirect(back)

    return _perform(request, tenant, "Cancel the task", effects, run, back)


@require_http_methods(_METHODS)
@opened_act_page
def revoke_key_page(request: HttpRequest, tenant: TenantView, item: str) -> HttpResponseBase:
    """Revoke an API key."""
    key_id = parse_id(item)
    back = reverse("admin:keys", args=[tenant.slug])
    effects = [f"Revokes the key {item} of {tenant.slug} for good: from the next request on it opens nothing."]

    def run(values: Values) -> HttpResponseBase:
        revoke_api_key(tenant_id=tenant.id, key_id=key_id, principal=principal_of(request), reason=values["reason"])
        messages.success(request, "The key is revoked.")
        return HttpResponseRedirect(back)

    return _perform(request, tenant, "Revoke the key", effects, run, back)


@require_http_methods(_METHODS)
@opened_act_page
def remove_member_page(request: HttpRequest, tenant: TenantView, item: str) -> HttpResponseBase:
    """Remove a member, and revoke the keys that he made."""
    member = get_member(tenant_id=tenant.id, member_id=parse_id(item))
    back = reverse("admin:members", args=[tenant.slug])
    effects = [
        f"Removes {member.email} ({member.role}) from {tenant.slug}, from the next request on.",
        f"Keys that are revoked with the member: {count_keys(tenant_id=tenant.id, member_id=member.id)}.",
    ]

    def run(values: Values) -> HttpResponseBase:
        revoked = remove_member(
            tenant_id=tenant.id, member_id=member.id, principal=principal_of(request), reason=values["reason"]
        )
        messages.success(request, f"{member.email} is removed; keys revoked: {revoked}.")
        return HttpResponseRedirect(back)

    return _perform(request, tenant, "Remove the member", effects, run, back)


@require_http_methods(_METHODS)
@opened_act_page
def revoke_invitation_page(request: HttpRequest, tenant: TenantView, item: str) -> HttpResponseBase:
    """Take an invitation back."""
    invitation_id = parse_id(item)
    back = reverse("admin:members", args=[tenant.slug])

    def run(values: Values) -> HttpResponseBase:
        revoke_invitation(
            tenant_id=tenant.id, invitation_id=invitation_id, principal=principal_of(request), reason=values["reason"]
        )
        messages.success(request, "The invitation is taken back.")
        return HttpResponseRedirect(back)

    return _perform(request, tenant, "Take the invitation back", ["Its link opens nothing any more."], run, back)


def _perform(
    request: HttpRequest,
    tenant: TenantView,
    title: str,
    effects: list[str],
    run: Callable[[Values], HttpResponseBase],
    back: str,
) -> HttpResponseBase:
    act = Act(title, title, ReasonForm, lambda _: effects, run, back, tenant, preview=False, danger=True)
    return perform(request, act)
