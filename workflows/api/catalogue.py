"""`/workflows`: what can be started here, with input schemas."""

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.description import read_page
from tenants.api.views import TenantResource
from tenants.errors import NotFound
from tenants.identity import SYSTEM_QUEUE
from workflows import registry
from workflows.api import operations
from workflows.definitions import Workflow

LISTING = "workflows"


class WorkflowList(TenantResource):
    """`/workflows`: all that can be started."""

    operations: ClassVar = {"GET": operations.LIST_WORKFLOWS}

    def get(self, request: Request) -> Response:
        """List workflows by name, page by page."""
        wanted = read_page(self.read_query(), tenant_id=self.tenant_id, listing=LISTING)
        known = _startable()
        names = sorted(name for name in known if wanted.after is None or name > wanted.after)
        return self.page(
            names[: wanted.limit + 1],
            wanted,
            listing=LISTING,
            document=lambda name: _document(known[name]),
            place=lambda name: name,
        )


class WorkflowDetail(TenantResource):
    """`/workflows/{name}`: one of them."""

    operations: ClassVar = {"GET": operations.GET_WORKFLOW}

    def get(self, request: Request, name: str) -> Response:
        """Show a workflow in its newest version, or in the one that is named."""
        version = self.read_query().get("version")
        versions = _startable().get(name, {})
        if not versions or (version is not None and version not in versions):
            raise NotFound
        return Response(_document(versions, version))


def _startable() -> dict[str, dict[int, Workflow]]:
    """Return the workflows that a tenant can start, by name and version; the platform's own work is not among them."""
    found: dict[str, dict[int, Workflow]] = {}
    for workflow in registry.all():
        if workflow.is_sound and workflow.queue != SYSTEM_QUEUE and not workflow.internal:
            found.setdefault(workflow.name, {}).setdefault(workflow.version, workflow)
    return found


def _document(versions: dict[int, Workflow], version: int | None = None) -> dict[str, Any]:
    workflow = versions[version or max(versions)]
    after = {node.name: list(node.after) for node in workflow.graph.nodes}
    return {
        "name": workflow.name,
        "version": workflow.version,
        "versions": sorted(versions),
        "queue": workflow.queue,
        "max_failures": workflow.max_failures,
        "input_schema": workflow.input_schema,
        "steps": [
            {
                "name": step.name,
                "after": after[step.name],
                "max_attempts": step.retry.max_attempts,
                "timeout_seconds": step.timeout_seconds,
                "atomic": step.atomic,
            }
            for step in workflow.steps.values()
        ],
    }
