"""The operator surface under test, in a process of its own, as it runs in production.

What makes it another surface (its apps, its middleware, its secret, its cookie names, its database role) is decided
when the settings are read, so no override in this process would be the same thing. Requests go over a pipe to Django's
test client there; the answer brings the statements along that it took.
"""

import atexit
import itertools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

from tests.database import touch

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "a quiet harbour at dawn"
_numbers = itertools.count(1)
_running: "Surface | None" = None


@dataclass(frozen=True)
class Answer:
    """One response, and the SQL statements that were sent for it."""

    status: int
    headers: dict[str, str]
    text: str
    queries: list[str]

    @property
    def location(self) -> str:
        """Where a redirect leads, or ''."""
        return self.headers.get("location", "")


@dataclass
class Visitor:
    """A browser of the operator surface: its cookies are its own."""

    surface: "Surface"
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        """Ask for a page."""
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, data: dict[str, Any] | None = None, **headers: str) -> Answer:
        """Send a form, with the forgery token that the site gave."""
        return self.ask("POST", path, data={"csrfmiddlewaretoken": self.token(), **(data or {})}, headers=headers)

    def ask(
        self, method: str, path: str, *, data: dict[str, Any] | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a request as it is; headers as `HX_Request="true"`."""
        named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
        sent = {"method": method, "path": path, "data": data, "headers": named, "cookies": self.cookies}
        found = self.surface.tell(do="request", **sent)
        for name, value in found.pop("cookies").items():
            self.cookies[name] = value
            if not value:
                del self.cookies[name]
        return Answer(**found)

    def token(self) -> str:
        """Return the forgery token, asking for a page with a form where none is known."""
        if "ductor_operator_csrf" not in self.cookies:
            self.get("/accounts/login/")
        return self.cookies.get("ductor_operator_csrf", "")


class Surface:
    """The process behind the pipe."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.surface_process"],
            cwd=ROOT,
            env={**os.environ, "DUCTOR_ROLE": "operator"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()

    def tell(self, **order: Any) -> Any:
        """Send one order and return what came of it; an exception there fails the test here."""
        touch()
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the operator surface's process has ended"
        answer = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer["done"]

    def call(self, function: str, **arguments: Any) -> Any:
        """Call a function (`package.module.name`) there with JSON arguments; the result comes back as JSON."""
        return self.tell(do="call", function=function, arguments=arguments)

    def outbox(self) -> list[dict[str, Any]]:
        """Return the mails sent since the last look: subject, body, to."""
        return list(self.tell(do="outbox"))

    def visitor(self) -> Visitor:
        """Return a browser without any cookie."""
        return Visitor(self)

    def password_only(self, email: str = "") -> Visitor:
        """Return the browser of a new operator who gave the password and no second factor."""
        address = email or f"operator-{next(_numbers)}@example.com"
        self.call("tenants.people.operators.create_operator", email=address, name="An Operator", password=PASSWORD)
        visitor = self.visitor()
        answer = visitor.post("/accounts/login/", {"login": address, "password": PASSWORD})
        assert answer.status == 302, answer.text
        return visitor

    def operator(self, email: str = "") -> Visitor:
        """Return the browser of a new operator after the first sign-in: password, then a second factor set up."""
        visitor = self.password_only(email)
        again = visitor.post("/accounts/reauthenticate/?next=/accounts/2fa/totp/activate/", {"password": PASSWORD})
        assert again.status == 302, again.text
        page = visitor.get("/accounts/2fa/totp/activate/")
        assert page.status == 200, (page.status, page.location, page.text)
        secret = re.search(r"\b[A-Z2-7]{32}\b", page.text)
        assert secret, page.text
        answer = visitor.post("/accounts/2fa/totp/activate/", {"code": code_now(secret[0])})
        assert answer.status == 302, answer.text
        return visitor


def operator_surface() -> Surface:
    """Return the operator surface of this run, started at the first call."""
    global _running
    if _running is None or _running.process.poll() is not None:
        _running = Surface()
    return _running


def code_now(secret: str) -> str:
    """Return the six digits that an authenticator app shows now for a TOTP secret."""
    counters = list(yield_hotp_counters_from_time())
    return str(format_hotp_value(hotp_value(secret, counters[len(counters) // 2])))
