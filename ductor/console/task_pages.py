"""A tenant's tasks. What they carry is the tenant's own and hostile text: it is shown as text, never as markup."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from ductor.console.access import opened_page
from ductor.console.paging import PAGE_SIZE, chosen, cut, id_from
from ductor.console.site import show
from tenants.identity import parse_id
from tenants.queries import TenantView
from workflows.queries import get_task, list_summaries
from workflows.states import TERMINAL, State
from workflows.step_queries import get_step, list_step_summaries

STATES = tuple(state.value for state in State)


@require_safe
@opened_page
def tasks(request: HttpRequest, tenant: TenantView) -> HttpResponse:
    """List tasks, newest first, by state, workflow or key."""
    state = chosen(request, "state", STATES)
    workflow, key = (request.GET.get(name, "").strip()[:128] for name in ("workflow", "key"))
    found = list_summaries(
        tenant_id=tenant.id,
        state=state,
        workflow=workflow or None,
        key=key or None,
        before=id_from(request, "before"),
        limit=PAGE_SIZE + 1,
    )
    shown, following = cut(request, found, "before", lambda task: task.id)
    wanted = {"state": state or "", "workflow": workflow, "key": key}
    context = {"tenant": tenant, "tasks": shown, "next": following, "states": STATES, "wanted": wanted}
    return show(request, "tasks.html", {"title": f"Tasks of {tenant.slug}", **context})


@require_safe
@opened_page
def task(request: HttpRequest, tenant: TenantView, item: str) -> HttpResponse:
    """Show one task: where it stands, its steps, what went in and what came out."""
    found = get_task(tenant_id=tenant.id, task_id=parse_id(item))
    steps = list_step_summaries(tenant_id=tenant.id, task_id=found.id)
    context = {"tenant": tenant, "task": found, "steps": steps, "ended": found.state in TERMINAL}
    return show(request, "task.html", {"title": f"Task {found.workflow} of {tenant.slug}", **context})


@require_safe
@opened_page
def step(request: HttpRequest, tenant: TenantView, item: str, step: str, attempt: int) -> HttpResponse:
    """Show what one step put out."""
    found = get_step(tenant_id=tenant.id, task_id=parse_id(item), name=step[:128], attempt=min(attempt, 2**31 - 1))
    context = {"tenant": tenant, "step": found, "task_id": item}
    return show(request, "step.html", {"title": f"Step {found.name}", **context})
