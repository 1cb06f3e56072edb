"""The demo as `up` shows it: keys, live bars, the table; and what of it is kept in demo.json."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ductor import databases
from ductor.up import UpFailed, demo
from ductor.up.supervisor import ROOT

POLL_SECONDS = 0.25
LOOK_SECONDS = 5.0
PLAIN_SECONDS = 2.0
STALL_SECONDS = 120.0


class DemoRun:
    """The demo of one home folder. `watch` is called while waiting and raises when a process of `up` has ended."""

    def __init__(self, home: Path, console: Console, watch: Callable[[], None]) -> None:
        self._file = home / "demo.json"
        self._console = console
        self._watch = watch
        self._kept = self._read()

    @property
    def keys(self) -> dict[str, str]:
        """Slug → API key of the demo's tenants."""
        keys: dict[str, str] = self._kept.get("keys", {})
        return keys

    def prepare(self) -> None:
        """Make tenants and keys, unless they are kept from an earlier start.

        Raises:
            UpFailed: they can't be made.
        """
        if not self.keys:
            self._provision()

    def check_keys(self, port: int) -> None:
        """Make new keys if the tenant surface does not know the kept ones: they are another database's."""
        if any(_status(port, key) == 401 for key in self.keys.values()):
            self._kept = {}
            self._provision()

    def run(self, *, show_again: bool) -> None:
        """Run the demo to its table on the first start; later only show the table again where asked to.

        Raises:
            UpFailed: the demo can't be started.
        """
        import django
        from django.db import DatabaseError

        django.setup()
        from tenants.errors import DuctorError

        try:
            if self._kept.get("done"):
                if show_again:
                    self._show(self._known_jobs())
                return
            jobs = demo.start()
            self._follow(jobs)
            self._show(jobs)
            self._keep(done={job.slug: job.total for job in jobs})
        except (DuctorError, DatabaseError) as error:
            raise UpFailed(f"the demo stopped: {' '.join(str(error).split())}") from error

    def _follow(self, jobs: list[demo.Job]) -> None:
        """Show a live bar for each tenant until all tasks have ended; plain lines where there is no terminal."""
        columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        live = self._console.is_terminal
        looked = spoken = 0.0
        seen, moved = -1, time.monotonic()
        with Progress(*columns, console=self._console, disable=not live) as bars:
            ids = {job.slug: bars.add_task(job.slug, total=job.total) for job in jobs}
            while True:
                self._watch()
                done = {job.slug: demo.finished(job) for job in jobs}
                for job in jobs:
                    bars.update(ids[job.slug], completed=done[job.slug])
                now = time.monotonic()
                if sum(done.values()) != seen:
                    seen, moved = sum(done.values()), now
                elif now - moved > STALL_SECONDS:
                    raise UpFailed(f"no task of the demo ended for {STALL_SECONDS:.0f} s: see the cluster's log")
                if not live and now - spoken > PLAIN_SECONDS:
                    spoken = now
                    self._console.print("  ".join(f"{job.slug} {done[job.slug]}/{job.total}" for job in jobs))
                # The counter also counts what a user starts meanwhile: the tasks themselves have the last word.
                if all(done[job.slug] == job.total for job in jobs) or now - looked > LOOK_SECONDS:
                    looked = now
                    if all(demo.result(job) is not None for job in jobs):
                        for job in jobs:
                            bars.update(ids[job.slug], completed=job.total)
                        return
                time.sleep(POLL_SECONDS)

    def _show(self, jobs: list[demo.Job]) -> None:
        results = [result for job in jobs if (result := demo.result(job)) is not None]
        self._console.print(demo.table(results))

    def _known_jobs(self) -> list[demo.Job]:
        from tenants.queries import get_tenant

        return [demo.Job(slug, get_tenant(slug=slug).id, total) for slug, total in self._kept["done"].items()]

    def _provision(self) -> None:
        environment = {**os.environ, "DUCTOR_ROLE": "owner"}
        command = [sys.executable, "-m", "ductor.up.provision"]
        made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if made.returncode != 0:
            lines = made.stderr.strip().splitlines()
            raise UpFailed(f"the demo's tenants can't be made: {lines[-1] if lines else 'no reason given'}")
        self._keep(keys=json.loads(made.stdout.strip().splitlines()[-1]))

    def _keep(self, **facts: Any) -> None:
        self._kept = {**self._kept, **facts}
        databases.write_private(self._file, json.dumps(self._kept, indent=2))

    def _read(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}


def _status(port: int, key: str) -> int:
    """Return the status with which the tenant surface answers a key; 0 if it doesn't answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"Host": "localhost", "Authorization": f"Bearer {key}"}
        connection.request("GET", "/api/v1/tasks?limit=1", headers=headers)
        return connection.getresponse().status
    except (OSError, HTTPException):
        return 0
    finally:
        connection.close()
