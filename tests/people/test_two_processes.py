"""Two server processes of the tenant surface: what one refuses, the other refuses too, from the next request on."""

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.test import override_settings

from tenants.keys import revoke_api_key
from tenants.members import change_role, remove_member
from tests.boot.clones import free_port
from tests.builders import PRINCIPAL, build_key, build_tenant, rows
from tests.database import owner
from tests.people.signing import PASSWORD, build_person, choose, join, sign_in
from tests.races import wait_until
from tests.surfaces import ROOT


@dataclass(frozen=True)
class Server:
    """One process and its port."""

    process: "subprocess.Popen[bytes]"
    port: int

    def ask(self, path: str, *, body: str = "", **headers: str) -> tuple[int, dict[str, str]]:
        """Send a request on a connection of its own; returns the status and the headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body:
            named["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("POST" if body else "GET", path, body=body or None, headers=named)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}

    def answers(self) -> bool:
        """Say whether it is up."""
        try:
            return self.ask("/health/live")[0] == 200
        except OSError:
            return False


def start_server() -> Server:
    port = free_port()
    command = [sys.executable, "-m", "ductor.serving", "web"]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "DUCTOR_PORT": str(port)}, stderr=subprocess.DEVNULL
    )
    return Server(process, port)


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Server, Server]]:
    """Two processes with nothing in common but the database and the secret."""
    pair = (start_server(), start_server())
    try:
        for server in pair:
            wait_until(server.answers, timeout=90.0)
        yield pair
    finally:
        for server in pair:
            server.process.terminate()
        for server in pair:
            server.process.wait(timeout=30)


Pair = tuple[Server, Server]


def test_b22_s10_a_revoked_key_is_refused_by_both(servers: Pair) -> None:
    tenant = build_tenant()
    key = build_key(tenant)
    # Often, so that whatever a process might keep of a key it has kept.
    for _ in range(3):
        assert [server.ask("/api/v1/tasks", Authorization=f"Bearer {key}")[0] for server in servers] == [200, 200]
    [(key_id,)] = rows("select id from tenants_apikey")
    revoke_api_key(tenant_id=tenant.id, key_id=key_id, principal=PRINCIPAL)
    assert [server.ask("/api/v1/tasks", Authorization=f"Bearer {key}")[0] for server in servers] == [401, 401]


def test_s11_a_removed_member_and_a_changed_role_are_refused_by_both(servers: Pair) -> None:
    tenant = build_tenant()
    person = build_person()
    member, principal = join(tenant, "admin", person)
    client = sign_in(person)
    choose(client, tenant.id)
    cookie = f"ductor_session={client.cookies['ductor_session'].value}"

    def seen(path: str) -> list[int]:
        return [server.ask(path, Cookie=cookie)[0] for server in servers]

    assert seen("/app/keys/") == seen("/app/") == [200, 200]
    change_role(tenant_id=tenant.id, member_id=member.id, role="viewer", principal=PRINCIPAL)
    assert seen("/app/keys/") == [403, 403]
    assert seen("/app/") == [200, 200]
    remove_member(tenant_id=tenant.id, member_id=member.id, principal=PRINCIPAL)
    assert seen("/app/") == [302, 302]
    assert principal.role == "admin", "what the session's requests were let in with before"


def test_a_suspended_tenant_is_refused_by_both(servers: Pair) -> None:
    tenant = build_tenant()
    key = build_key(tenant)
    assert [server.ask("/api/v1/tasks", Authorization=f"Bearer {key}")[0] for server in servers] == [200, 200]
    owner().execute("update tenants_tenant set status = 'suspended' where id = %s", (tenant.id,))
    assert [server.ask("/api/v1/tasks", Authorization=f"Bearer {key}")[0] for server in servers] == [401, 401]


def test_wrong_passwords_are_counted_by_both_together(servers: Pair) -> None:
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"]):
        person, other = build_person(), build_person()
    assert log_in(servers[1], other.email, PASSWORD) == 302
    for number in range(5):
        assert log_in(servers[number % 2], person.email, f"wrong-{number}") == 200
    assert [log_in(server, person.email, PASSWORD) for server in servers] == [200, 200]
    assert log_in(servers[0], other.email, PASSWORD) == 302


def log_in(server: Server, email: str, password: str) -> int:
    """Give a password over a server's form; 302 is a success."""
    _, headers = server.ask("/accounts/login/")
    token = headers["set-cookie"].partition("ductor_csrf=")[2].partition(";")[0]
    body = f"login={email.replace('@', '%40')}&password={password.replace(' ', '+')}&csrfmiddlewaretoken={token}"
    return server.ask("/accounts/login/", body=body, Cookie=f"ductor_csrf={token}")[0]
