"""C83: eight readers wait for one task while its database goes away and comes back; all see the same end."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from ductor.embedded import EmbeddedServer
from tests.api.workflows import REVIEW
from tests.boot.clones import free_port
from tests.builders import build_key, build_tenant
from tests.cluster.test_cluster_database import own_server  # noqa: F401
from tests.races import wait_until
from tests.surfaces import ROOT

READERS = 8


@dataclass
class Surface:
    """A server process of the tenant surface, and one key."""

    port: int
    key: str
    statuses: list[int] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any], float]:
        """Send one request; returns status, document and what Retry-After says, in seconds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Host": "localhost", "Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        document = json.loads(answer.read())
        connection.close()
        self.statuses.append(answer.status)
        return answer.status, document, float(answer.getheader("Retry-After", "0"))

    def insist(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Ask again as long as the surface says that it is unavailable, and when it says so."""
        while True:
            status, document, pause = self.ask(method, path, body)
            if status != 503:
                return status, document
            time.sleep(pause)

    def is_up(self) -> bool:
        try:
            return self.ask("GET", "/health/ready")[0] == 200
        except OSError:
            return False


@pytest.fixture
def surface(own_server: EmbeddedServer) -> Iterator[Surface]:  # noqa: F811
    tenant = build_tenant()
    found = Surface(free_port(), build_key(tenant))
    env = {**os.environ, "DUCTOR_PORT": str(found.port), "DUCTOR_APPS": "tests.api,tests.watching"}
    command = [sys.executable, "-m", "ductor.serving", "web"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.DEVNULL)
    try:
        wait_until(found.is_up, timeout=90.0)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.full
def test_c83_readers_across_a_restart_converge_on_cancelled(
    surface: Surface,
    own_server: EmbeddedServer,  # noqa: F811
) -> None:
    status, task = surface.insist("POST", "/api/v1/tasks", {"workflow": REVIEW, "input": {"order": 1}})
    assert status == 201
    path, ends = f"/api/v1/tasks/{task['id']}", []
    began = threading.Barrier(READERS + 1)

    def read() -> None:
        began.wait()
        state = "queued"
        while state == "queued":
            answered, document = surface.insist("GET", f"{path}?wait=20")
            assert answered == 200
            state = document["state"]
        ends.append(state)

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    began.wait()
    own_server.release()
    assert surface.ask("POST", f"{path}/cancel", {})[0] == 503
    own_server.acquire()
    assert surface.insist("POST", f"{path}/cancel", {"reason": "once"})[1]["state"] == "cancelled"
    again = surface.insist("POST", f"{path}/cancel", {"reason": "twice"})
    assert (again[0], again[1]["code"], again[1]["state"]) == (409, "already_terminal", "cancelled")
    for reader in readers:
        reader.join(60)
    assert ends == ["cancelled"] * READERS
    assert set(surface.statuses) <= {200, 201, 409, 503}
