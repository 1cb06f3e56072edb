"""The first page, and the tenant's use against its limits."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from ductor.pages.access import Fragment, TenantPage
from ductor.pages.forms import PolicyForm
from tenants.errors import Invalid, PolicyMissing, VersionMismatch
from tenants.permissions import Permission
from tenants.policy import OWN, frozen_names, set_own_policy
from tenants.queries import PolicyView, get_policy, list_usage
from workflows.queries import list_summaries

NEWEST = 10
ENDS = ("completed", "failed", "cancelled")


class Overview(TenantPage):
    """How much: use against limits, how tasks have ended, the newest ones."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.USAGE_READ}
    place = "app-overview"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the page, or only its figures to whoever keeps looking at it."""
        tasks = list_summaries(tenant_id=self.tenant_id, limit=NEWEST) if self.may(Permission.TASKS_READ) else []
        context = _use(self.tenant_id) | {"tasks": tasks}
        fragment = Fragment.of(request, "app/figures.html", context)
        if request.htmx:  # type: ignore[attr-defined]
            return fragment.answer(request)
        return self.page("app/overview.html", context | {"fragment": fragment, "live": request.path})


class Usage(TenantPage):
    """Use against limits queue by queue, and the limits that a tenant sets for itself."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.USAGE_READ, "POST": Permission.POLICY_WRITE}
    place = "app-usage"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show use and limits."""
        return self._show(None)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Tighten the tenant's own limits, or lift what it set."""
        form = PolicyForm(request.POST)
        if not form.is_valid():
            return self._show(form, status=400)
        wanted = form.cleaned_data
        try:
            set_own_policy(
                tenant_id=self.tenant_id,
                changes={name: wanted[name] for name in OWN},
                expected=[wanted["version"]],
                principal=self.principal,
                reason=wanted["reason"],
            )
        except (Invalid, VersionMismatch) as refused:
            form.add_error(None, refused.message)
            return self._show(form, status=refused.http_status)
        messages.success(request, "The limits are set. What runs goes on; new work is held to them.")
        return redirect("app-usage")

    def _show(self, form: PolicyForm | None, status: int = 200) -> HttpResponse:
        context = _use(self.tenant_id)
        policy: PolicyView | None = context["policy"]
        if policy and self.may(Permission.POLICY_WRITE):
            present = {name: getattr(policy, name) for name in OWN} | {"version": policy.version}
            context["form"] = form or PolicyForm(initial=present)
        return self.page("app/usage.html", context, status=status)


def _use(tenant_id: UUID) -> dict[str, Any]:
    try:
        policy = get_policy(tenant_id=tenant_id)
    except PolicyMissing:
        policy = None
    queues = list_usage(tenant_id=tenant_id)
    ends = [(state, sum(getattr(queue, state) for queue in queues)) for state in ENDS]
    return {"policy": policy, "frozen": frozen_names(policy.frozen) if policy else [], "queues": queues, "ends": ends}
