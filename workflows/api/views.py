"""The task resource of the tenant API."""

from typing import Any, ClassVar

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.cursors import write_cursor
from tenants.api.parsing import single_header
from tenants.api.views import TenantResource
from tenants.identity import parse_id
from tenants.permissions import Permission
from tenants.scope import scope_of
from workflows.api import parsing, serializers
from workflows.api.waiting import wait_for_end
from workflows.cancelling import cancel
from workflows.queries import get_task, list_steps, list_summaries
from workflows.starting import start_tasks


class TaskList(TenantResource):
    """`/tasks`: start one, list many."""

    permissions: ClassVar[dict[str, Permission | None]] = {
        "GET": Permission.TASKS_READ,
        "POST": Permission.TASKS_START,
    }

    def get(self, request: Request) -> Response:
        """List the tenant's tasks, newest first, page by page."""
        wanted = parsing.read_list(request.query_params, self.tenant_id)
        tasks = list_summaries(
            tenant_id=self.tenant_id,
            state=wanted.state,
            workflow=wanted.workflow,
            key=wanted.key,
            before=wanted.before,
            limit=wanted.limit + 1,
        )
        page, has_more = tasks[: wanted.limit], len(tasks) > wanted.limit
        cursor = None
        if has_more:
            cursor = write_cursor(tenant_id=self.tenant_id, listing=parsing.TASK_LISTING, row_id=page[-1].id)
        data = [serializers.task_summary(task) for task in page]
        return Response({"data": data, "next_cursor": cursor, "has_more": has_more})

    def post(self, request: Request) -> Response:
        """Start a task. 201 for a new one, 200 for the one that this key started before."""
        parsing.no_parameters(request.query_params)
        start = parsing.read_start(_body(request), single_header(request, "Idempotency-Key"))
        # The answer is made after the scope has committed: success is said only of what is known to be durable.
        with scope_of(self.tenant_id):
            [started] = start_tasks(
                tenant_id=self.tenant_id, starts=[start], principal=self.principal, immediate=True, source="api"
            )
            task = get_task(tenant_id=self.tenant_id, task_id=started.task_id)
        headers = {"Location": reverse("task", args=[str(started.task_id)])}
        if not started.created:
            headers["Idempotency-Replayed"] = "true"
        return Response(serializers.task_document(task), status=201 if started.created else 200, headers=headers)


class TaskDetail(TenantResource):
    """`/tasks/{id}`: one task, its steps and its progress."""

    permissions: ClassVar[dict[str, Permission | None]] = {"GET": Permission.TASKS_READ}

    def get(self, request: Request, task_id: str) -> Response:
        """Show a task; `?wait=20` answers when it has ended, or after so many seconds."""
        seconds = parsing.read_wait(request.query_params)
        parsed = parse_id(task_id)
        task = wait_for_end(tenant_id=self.tenant_id, task_id=parsed, seconds=seconds)
        steps = list_steps(tenant_id=self.tenant_id, task_id=parsed)
        return Response(serializers.task_document(task, steps))


class TaskCancel(TenantResource):
    """`/tasks/{id}/cancel`: end a task that has not ended."""

    permissions: ClassVar[dict[str, Permission | None]] = {"POST": Permission.TASKS_CANCEL}

    def post(self, request: Request, task_id: str) -> Response:
        """Cancel a task and show it."""
        parsing.no_parameters(request.query_params)
        reason = parsing.read_cancel(_body(request))
        task = cancel(tenant_id=self.tenant_id, task_id=parse_id(task_id), principal=self.principal, reason=reason)
        return Response(serializers.task_document(task))


def _body(request: Request) -> dict[str, Any]:
    """Without a body REST framework has an empty form here, whatever the content type."""
    return request.data if isinstance(request.data, dict) else {}
