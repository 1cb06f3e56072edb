"""Tenants as they reach the API: a key, and requests made with it."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.test.client import ClientHandler

from tenants.queries import TenantView
from tests.api.workflows import REVIEW
from tests.builders import build_key, build_tenant, rows

TASKS = "/api/v1/tasks"
ORDER = {"order": 1}


@dataclass(frozen=True)
class Caller:
    """A tenant with a key."""

    tenant: TenantView
    key: str

    def get(self, path: str = TASKS, *, method: str = "GET", **headers: str) -> Any:
        """Send a request without a body."""
        return client().generic(method, path, headers=self._headers(headers))

    def post(self, path: str = TASKS, body: Any = None, *, method: str = "POST", **headers: str) -> Any:
        """Send a JSON body; bytes go out as they are."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self._headers(headers)
        return client().generic(method, path, raw, content_type="application/json", headers=headers)

    def start(self, **more: Any) -> Any:
        """Start a task."""
        return self.post(body={"workflow": REVIEW, "input": ORDER, **more})

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in more.items()}
        return {"Authorization": f"Bearer {self.key}", **named}


def client(host: str = "localhost", **defaults: Any) -> Client:
    """A client of its own cookies and headers, on the one chain of middleware: making that reads every static file."""
    found = Client(SERVER_NAME=host, **defaults)
    found.handler = handler()
    return found


@lru_cache(maxsize=1)
def handler() -> ClientHandler:
    """The surface as one server process has it; `handler.cache_clear()` where a test changes its middleware."""
    found = ClientHandler(enforce_csrf_checks=False)
    found.load_middleware()
    return found


def build_caller(*scopes: str, tenant: TenantView | None = None, **limits: Any) -> Caller:
    """Make a tenant and a key with these scopes, or with those for tasks."""
    tenant = tenant or build_tenant(**limits)
    return Caller(tenant, build_key(tenant, *scopes))


def comparable(response: HttpResponse) -> tuple[int, dict[str, str], bytes]:
    """All that a client can tell an answer by, with the request id and his own count taken out."""
    request_id = response["X-Request-Id"]
    # How many requests the caller has left is his own doing, and differs between any two of his requests.
    own = ("X-Request-Id", "RateLimit")
    headers = {name: value for name, value in response.headers.items() if name not in own}
    return response.status_code, headers, response.content.replace(request_id.encode(), b"<request>")


def assert_problem(response: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is a problem document of this status and code, and return the document."""
    document: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, document.get("code")) == (status, code), document
    assert response["Content-Type"] == "application/problem+json"
    assert document["status"] == status
    assert document["type"] == f"/problems/{code.replace('_', '-')}"
    assert document["title"]
    assert document["detail"]
    assert document["request_id"] == response["X-Request-Id"]
    assert "no-store" in response["Cache-Control"]
    return document


def written() -> list[tuple[Any, ...]]:
    """Everything that a request could have written, as the owner sees it."""
    return [
        rows("select * from workflows_task order by id"),
        rows("select * from workflows_taskkey order by task_id"),
        rows("select * from workflows_admission order by id"),
        rows("select * from workflows_definition order by id"),
        rows("select * from tenants_load order by tenant_id"),
        rows("select * from tenants_turn order by tenant_id, queue"),
        rows("select * from tenants_act order by id"),
    ]
