"""Tasks: the list that stays up to date, one task with its steps, and cancelling."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from ductor.pages.access import Fragment, TenantPage
from ductor.pages.forms import ReasonForm, TaskFilter
from ductor.pages.timeline import draw
from ductor.pages.waiting import explain
from tenants.errors import Conflict
from tenants.identity import parse_id
from tenants.permissions import Permission
from workflows.cancelling import cancel
from workflows.queries import TaskView, get_task, list_summaries
from workflows.states import TERMINAL, State
from workflows.step_queries import get_step, list_step_summaries

PAGE = 50
LAST = UUID(int=2**128 - 1)
PARTS = frozenset({"input", "output", "error"})


class TaskList(TenantPage):
    """The tenant's tasks, newest first; filters and position stand in the address."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.TASKS_READ}
    place = "app-tasks"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show a page of tasks, or only its rows to whoever keeps looking at it."""
        form = TaskFilter(request.GET)
        wanted = form.cleaned_data if form.is_valid() else None
        context: dict[str, Any] = {
            "form": form,
            "states": _tabs(request),
            "filtered": bool(wanted and any(_set(wanted))),
        }
        if wanted is None:
            return self.page("app/tasks.html", context, status=400)
        rows = self._rows(wanted)
        fragment = Fragment.of(request, "app/task_rows.html", rows | {"filtered": context["filtered"]})
        if request.htmx:  # type: ignore[attr-defined]
            return fragment.answer(request)
        top = rows["tasks"][0].id if rows["tasks"] else ""
        return self.page("app/tasks.html", context | {"fragment": fragment, "live": _address(request, top=top)})

    def _rows(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return a page of rows. They keep their place under somebody's eyes: newer tasks are only counted."""
        chosen = {name: wanted[name] or None for name in ("state", "workflow", "key")}
        before, top = _id_in(self.request, "before"), _id_in(self.request, "top")
        newer = 0
        if top and not before:
            newest = list_summaries(tenant_id=self.tenant_id, limit=PAGE, **chosen)
            newer = sum(task.id.int > top.int for task in newest)
            before = UUID(int=min(top.int + 1, LAST.int))
        found = list_summaries(tenant_id=self.tenant_id, before=before, limit=PAGE + 1, **chosen)
        return {
            "tasks": found[:PAGE],
            "newer": newer,
            "page_size": PAGE,
            "newest": _address(self.request),
            "more": _address(self.request, before=found[PAGE - 1].id) if len(found) > PAGE else "",
            "first": _address(self.request) if "before" in self.request.GET else "",
        }


class TaskDetail(TenantPage):
    """One task: where it stands and why, its steps in time, what went in and came out."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.TASKS_READ}
    place = "app-tasks"

    def get(self, request: HttpRequest, task_id: str) -> HttpResponse:
        """Show the task, or only what may have changed to whoever keeps looking at it."""
        task = get_task(tenant_id=self.tenant_id, task_id=parse_id(task_id))
        steps = list_step_summaries(tenant_id=self.tenant_id, task_id=task.id)
        context = {
            "task": task,
            "ended": task.state in TERMINAL,
            "why": explain(task, self.tenant_id),
            "steps": steps,
            "timeline": draw(task, steps, datetime.now(UTC)),
            "progress": _progress(task),
            "waited": _seconds(task.created_at, task.started_at or task.terminal_at),
            "ran": _seconds(task.started_at, task.terminal_at),
        }
        fragment = Fragment.of(request, "app/task_state.html", context)
        if request.htmx:  # type: ignore[attr-defined]
            return fragment.answer(request)
        more = {
            "fragment": fragment,
            "live": "" if context["ended"] else request.path,
            "form": ReasonForm(),
            "may_cancel": not context["ended"] and self.may(Permission.TASKS_CANCEL),
        }
        return self.page("app/task.html", context | more)


class TaskCancel(TenantPage):
    """Ends a task that has not ended."""

    permissions: ClassVar[Mapping[str, Permission]] = {"POST": Permission.TASKS_CANCEL}

    def post(self, request: HttpRequest, task_id: str) -> HttpResponse:
        """Cancel and show the task."""
        form = ReasonForm(request.POST)
        parsed = parse_id(task_id)
        if not form.is_valid():
            get_task(tenant_id=self.tenant_id, task_id=parsed)
            messages.error(request, "Not cancelled: a reason is one line of printable text, at most 1,000 characters.")
            return redirect("app-task", task_id=task_id)
        reason = form.cleaned_data["reason"]
        try:
            cancel(tenant_id=self.tenant_id, task_id=parsed, principal=self.principal, reason=reason)
        except Conflict as refused:
            messages.error(request, refused.message)
        else:
            messages.success(request, "The task is cancelled.")
        return redirect("app-task", task_id=task_id)


class StepDetail(TenantPage):
    """One recorded step: what it put out, or how it failed."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.TASKS_READ}
    place = "app-tasks"

    def get(self, request: HttpRequest, task_id: str, step: str, attempt: int) -> HttpResponse:
        """Show the step."""
        parsed = parse_id(task_id)
        found = get_step(tenant_id=self.tenant_id, task_id=parsed, name=step, attempt=attempt)
        ran = _seconds(found.started_at, found.finished_at)
        return self.page("app/step.html", {"step": found, "task_id": task_id, "ran": ran})


class TaskDownload(TenantPage):
    """A task's input, output or error as a file: what is too long for a page."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.TASKS_READ}

    def get(self, request: HttpRequest, task_id: str, part: str) -> HttpResponse:
        """Hand the value over as an attachment, which no browser shows as a page of this site."""
        if part not in PARTS:
            raise Http404
        task = get_task(tenant_id=self.tenant_id, task_id=parse_id(task_id))
        response = HttpResponse(json.dumps(getattr(task, part), indent=2), content_type="application/json")
        response["Content-Disposition"] = f'attachment; filename="{task.id}-{part}.json"'
        return response


def _progress(task: TaskView) -> dict[str, Any] | None:
    """Return what a handler reported, as a bar where it named a total; what it wrote may be anything."""
    known = task.progress
    if not isinstance(known, dict) or not isinstance(known.get("done"), int | float):
        return None
    done, total, note = known["done"], known.get("total"), known.get("note")
    bounded = isinstance(total, int | float) and total > 0
    share = max(0, min(100, round(done * 100 / total))) if bounded else None
    return {"done": done, "total": total if bounded else None, "share": share, "note": note or ""}


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return (until - since).total_seconds() if since and until else None


def _tabs(request: HttpRequest) -> list[tuple[str, str, bool]]:
    """Return label, address and whether it is the present one, for each state and for all."""
    current = request.GET.get("state", "")
    states = [("All", ""), *((state.value, state.value) for state in State)]
    return [(label, _address(request, state=value), value == current) for label, value in states]


def _set(wanted: Mapping[str, Any]) -> list[Any]:
    return [wanted[name] for name in ("state", "workflow", "key")]


def _address(request: HttpRequest, **changes: Any) -> str:
    """Return this list's address with other filters; the position belongs to the filters it was found with."""
    kept = {name: request.GET.get(name, "") for name in ("state", "workflow", "key")}
    if "top" in changes and "before" in request.GET:
        kept["before"] = request.GET["before"]
    named = {name: str(value) for name, value in {**kept, **changes}.items() if value}
    return f"{request.path}?{urlencode(named)}" if named else request.path


def _id_in(request: HttpRequest, name: str) -> UUID | None:
    text = request.GET.get(name, "")
    try:
        return UUID(text) if text else None
    except ValueError:
        raise BadRequest from None
