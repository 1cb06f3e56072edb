"""The processes behind a journey, and the acts that every journey begins with."""

import http.client
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time

from tests.boot.clones import free_port
from tests.cluster.running import until
from tests.commands.running import ROOT, ductor_process

PASSWORD = "a quiet harbour at dawn"


class Stage:
    """The tenant surface, the operator surface and a cluster with the workflow of the gate."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mail = folder, folder / "mail"
        self.port, self.operator_port = free_port(), free_port()
        self.base = f"http://localhost:{self.port}"
        self.operators = f"http://localhost:{self.operator_port}"
        self.environment = {
            "DUCTOR_PORT": str(self.port),
            "DUCTOR_OPERATOR_PORT": str(self.operator_port),
            "DUCTOR_BASE_URL": self.base,
            "DUCTOR_EMAIL_URL": f"filemail:///{self.mail}",
            "DUCTOR_APPS": "tests.journeys.gate",
            "DUCTOR_WORKERS": "1",
            "DUCTOR_DRAIN_SECONDS": "1",
        }
        self.log = folder / "processes.log"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all three and wait until they are ready."""
        self._start("ductor.serving", "web")
        self._start("ductor.serving", "operator")
        self._start("django", "qcluster", DUCTOR_ROLE="worker")
        until(lambda: self._answers(self.port) and self._answers(self.operator_port), seconds=90, what=self.said)
        until(lambda: "qcluster ready" in self.said(), seconds=60, what=self.said)

    def stop(self) -> None:
        """End them."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(timeout=60)

    def said(self) -> str:
        """Return what the processes wrote."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def ductor(self, *arguments: str) -> Any:
        """Run a command beside them; returns its document."""
        ran = ductor_process(*arguments, "--json", **self.environment)
        assert ran.code == 0, ran.err
        return ran.document

    def mailed_link(self, address: str) -> str:
        """Return the link in the newest mail to an address."""
        mails = sorted(self.mail.glob("*"), key=lambda path: path.stat().st_mtime, reverse=True)
        texts = [text for text in (mail.read_text() for mail in mails) if f"To: {address}" in text]
        links = re.findall(rf"{self.base}/app/invitations/[\w-]+/", texts[0].replace("=\n", ""))
        return str(links[0])

    def join(self, page: Any, tenant: str, address: str, role: str = "owner", name: str = "Pat Porter") -> None:
        """Take a person from the invitation's mail to the tenant's first page."""
        self.ductor("members", "invite", tenant, address, "--role", role)
        page.goto(self.mailed_link(address))
        page.get_by_role("link", name="Make an account").click()
        page.get_by_label("Name").fill(name)
        page.locator("[name=password1]").fill(PASSWORD)
        page.locator("[name=password2]").fill(PASSWORD)
        page.get_by_role("button", name="Sign Up").click()
        page.get_by_role("button", name=f"Join as {address}").click()
        page.wait_for_url(f"{self.base}/app/")

    def _start(self, module: str, *arguments: str, **more: str) -> None:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env={**os.environ, **self.environment, **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)

    def _answers(self, port: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health/ready", headers={"Host": "localhost"})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def set_up_totp(page: Any, base: str, password: str = PASSWORD) -> str:
    """Set an authenticator app up; returns its secret."""
    page.goto(f"{base}/accounts/2fa/totp/activate/")
    if "reauthenticate" in page.url:
        page.locator("[name=password]").fill(password)
        page.get_by_role("button", name="Confirm").click()
    secret = str(page.get_by_label("Authenticator secret").input_value())
    page.get_by_label("Authenticator code").fill(code(secret))
    page.get_by_role("button", name="Activate").click()
    return secret


def code(secret: str, later: int = 0) -> str:
    """Return the six digits that an app shows for a secret, now or some half minutes later; each opens once."""
    counter = sorted(yield_hotp_counters_from_time())[1] + later
    return str(format_hotp_value(hotp_value(secret, counter)))


def sign_in(page: Any, base: str, address: str, digits: str, password: str = PASSWORD) -> None:
    """Give the password and then the code of the second factor."""
    page.goto(f"{base}/accounts/login/")
    page.get_by_label("Email").fill(address)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_label("Code").fill(digits)
    page.get_by_role("button", name="Sign In", exact=True).click()
