"""The task resource of the tenant API."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.description import read_page
from tenants.api.parsing import single_header
from tenants.api.views import TenantResource
from tenants.errors import DuctorError, QueueUnknown
from tenants.identity import parse_id
from workflows.api import operations, parsing, serializers
from workflows.api.waiting import wait_for_end
from workflows.cancelling import cancel
from workflows.errors import InputInvalid, KeyConflict, UnknownWorkflow
from workflows.queries import list_steps, list_summaries
from workflows.starting import Start, start_task, start_tasks

LISTING = "tasks"


class TaskList(TenantResource):
    """`/tasks`: start one, list many."""

    operations: ClassVar = {"GET": operations.LIST_TASKS, "POST": operations.START_TASK}

    def get(self, request: Request) -> Response:
        """List the tenant's tasks, newest first, page by page."""
        given = self.read_query()
        wanted = read_page(given, tenant_id=self.tenant_id, listing=LISTING)
        tasks = list_summaries(
            tenant_id=self.tenant_id,
            state=given.get("state"),
            workflow=given.get("workflow"),
            key=given.get("key"),
            before=wanted.before,
            limit=wanted.limit + 1,
        )
        return self.page(tasks, wanted, listing=LISTING, document=serializers.task_summary, place=lambda task: task.id)

    def post(self, request: Request) -> Response:
        """Start a task. 201 for a new one, 200 for the one that this key started before."""
        start = parsing.read_start(self.read_body(), single_header(request, "Idempotency-Key"))
        # Committed when it returns: success is said only of what is known to be durable.
        task, created = start_task(tenant_id=self.tenant_id, start=start, principal=self.principal, source="api")
        headers = {"Location": reverse("task", args=[str(task.id)])}
        if not created:
            headers["Idempotency-Replayed"] = "true"
        return Response(serializers.task_document(task), status=201 if created else 200, headers=headers)


class TaskBatch(TenantResource):
    """`/tasks/batch`: start many, all or none."""

    operations: ClassVar = {"POST": operations.START_TASKS}

    def post(self, request: Request) -> Response:
        """Start 1 to 1,000 tasks in one transaction. 201 where one of them is new, 200 where all were there."""
        self.refuse_idempotency_key("Each item carries its own `key`.")
        starts = parsing.read_batch(self.read_body())
        with _pointing_into(starts):
            done = start_tasks(
                tenant_id=self.tenant_id, starts=starts, principal=self.principal, immediate=True, source="api"
            )
        data = [
            {"id": str(one.task_id), "key": start.key, "created": one.created}
            for start, one in zip(starts, done, strict=True)
        ]
        return Response({"data": data}, status=201 if any(one.created for one in done) else 200)


class TaskDetail(TenantResource):
    """`/tasks/{task_id}`: one task, its steps and its progress."""

    operations: ClassVar = {"GET": operations.GET_TASK}

    def get(self, request: Request, task_id: str) -> Response:
        """Show a task; `?wait=20` answers when it has ended, or after so many seconds."""
        seconds = self.read_query().get("wait", 0)
        parsed = parse_id(task_id)
        task = wait_for_end(tenant_id=self.tenant_id, task_id=parsed, seconds=seconds)
        steps = list_steps(tenant_id=self.tenant_id, task_id=parsed)
        return Response(serializers.task_document(task, steps))


class TaskCancel(TenantResource):
    """`/tasks/{task_id}/cancel`: end a task that has not ended."""

    operations: ClassVar = {"POST": operations.CANCEL_TASK}

    def post(self, request: Request, task_id: str) -> Response:
        """Cancel a task and show it."""
        reason = self.read_body().get("reason", "")
        task = cancel(tenant_id=self.tenant_id, task_id=parse_id(task_id), principal=self.principal, reason=reason)
        return Response(serializers.task_document(task))


@contextmanager
def _pointing_into(starts: Sequence[Start]) -> Iterator[None]:
    """Let each refusal of a batch name the item that it is about."""
    try:
        yield
    except InputInvalid as error:
        # Of several starts the flaws are led by the index already.
        lead = "/items/0" if len(starts) == 1 else "/items"
        flaws = [{**flaw, "pointer": lead + flaw["pointer"]} for flaw in error.fields["errors"]]
        error.fields["errors"] = flaws
        raise
    except (UnknownWorkflow, QueueUnknown, KeyConflict) as error:
        member = {UnknownWorkflow: "workflow", QueueUnknown: "queue", KeyConflict: "key"}[type(error)]
        error.fields["errors"] = list(_about(starts, member, error))
        raise


def _about(starts: Sequence[Start], member: str, error: DuctorError) -> Iterator[dict[str, Any]]:
    """Yield the first item whose member has the value that the refusal names."""
    versions = {error.fields.get("version")} if member == "workflow" else set()
    for index, start in enumerate(starts):
        if getattr(start, member) == error.fields.get(member) and versions <= {start.version}:
            yield {"pointer": f"/items/{index}/{member}", "code": error.code, "detail": error.message}
            return
