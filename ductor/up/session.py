"""One run of `up`, from the lock to the end of the last process."""

import fcntl
import os
import re
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from ductor import databases, init_db
from ductor.embedded import ServerFailed
from ductor.installing import ProgressLine
from ductor.up import Stopped, UpFailed
from ductor.up.demo_run import DemoRun
from ductor.up.options import Options, read
from ductor.up.supervisor import Supervisor

DEMO_APP = "ductor.demo"
READY_SECONDS = 60
CLUSTER_READY = "qcluster ready"
TICK_SECONDS = 0.2
DATABASE_SECONDS = 1.0
# A cluster drains for DUCTOR_DRAIN_SECONDS (25) before it lets go of what runs.
STOP_MARGIN_SECONDS = 10


def main(arguments: Sequence[str]) -> int:
    """Run `manage.py up`; return its exit code: 0 after a stop or --once, 1 with one line on stderr otherwise."""
    options = read(arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        with _only_one(databases.home()):
            Session(options).run()
    except Stopped:
        return 0
    except (UpFailed, ServerFailed, init_db.InitFailed, databases.DatabaseUnclear) as failure:
        print(f"ductor: {failure}", file=sys.stderr)
        return 1
    return 0


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(number)


@contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Hold the lock that says an `up` runs.

    Raises:
        UpFailed: another one holds it.
    """
    path = home / "up.lock"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600)) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                handle.seek(0)
                owner = handle.read().strip() or "?"
                raise UpFailed(f"an `up` already runs (process {owner}) on {home}: stop it first") from None
            handle.truncate(0)
            handle.write(str(os.getpid()))
            handle.flush()
            yield
    except PermissionError as error:
        raise UpFailed(f"{error.filename or home} belongs to another user: set DUCTOR_HOME to your own folder") from (
            error
        )
    except OSError as error:
        raise UpFailed(f"can't use {error.filename or home}: {error.strerror or error}") from error


class Session:
    """The acts of one `up` in their order."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.home = databases.home()
        self.console = Console(highlight=False)
        self.progress = ProgressLine()
        self._embedded = databases.uses_embedded()
        self._looked = 0.0
        self.supervisor = Supervisor(self.home / "logs", self._say, drain_seconds() + STOP_MARGIN_SECONDS)

    def run(self) -> None:
        """Do all of it; returns after --once, else at a stop signal.

        Raises:
            UpFailed, ServerFailed, InitFailed, DatabaseUnclear: with one line.
            Stopped: a signal asked for the end.
        """
        begun = time.monotonic()
        for port, flag in ((self.options.port, "--port"), (self.options.operator_port, "--operator-port")):
            check_port(port, flag)
        if self.options.reset:
            self._reset()
        try:
            if self._embedded:
                databases.embedded_server().acquire(self.progress.show)
            init_db.initialise(progress=self.progress.show)
            self._serve(begun)
        finally:
            self._end()

    def _serve(self, begun: float) -> None:
        self._set_environment()
        demo = DemoRun(self.home, self.console, self._watch) if self.options.demo else None
        if demo:
            self.progress.show("making the demo's tenants")
            demo.prepare()
        self.progress.show("starting the processes")
        # Each process has a role of its own; this one's is not for them.
        self.supervisor.start({name: value for name, value in os.environ.items() if name != "DUCTOR_ROLE"})
        self._wait_until_ready()
        if demo:
            demo.check_keys(self.options.port)
        self.progress.close()
        self._say_ready(time.monotonic() - begun, demo)
        if demo:
            demo.run(show_again=self.options.once)
        if self.options.once:
            return
        self._say("serving; Ctrl-C stops everything")
        while True:
            self._watch()
            time.sleep(TICK_SECONDS)

    def _set_environment(self) -> None:
        """Say to the children, and to this process's Django, what the flags said."""
        os.environ["DUCTOR_PORT"] = str(self.options.port)
        os.environ["DUCTOR_OPERATOR_PORT"] = str(self.options.operator_port)
        os.environ["PYTHONUNBUFFERED"] = "1"
        if self.options.workers:
            os.environ["DUCTOR_WORKERS"] = str(self.options.workers)
        if self.options.demo:
            apps = [name for name in os.environ.get("DUCTOR_APPS", "").split(",") if name]
            os.environ["DUCTOR_APPS"] = ",".join(dict.fromkeys([*apps, DEMO_APP]))
        # Counters of processes that are gone would be summed into the living ones'.
        figures = self.home / "metrics"
        shutil.rmtree(figures, ignore_errors=True)
        figures.mkdir(mode=0o700)
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(figures)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        waiting = {
            "web": lambda: answers(self.options.port),
            "operator": lambda: answers(self.options.operator_port),
            "cluster": lambda: self.supervisor.child("cluster").said(CLUSTER_READY),
        }
        while waiting:
            self._watch()
            waiting = {name: is_ready for name, is_ready in waiting.items() if not is_ready()}
            if waiting and time.monotonic() > deadline:
                child = self.supervisor.child(next(iter(waiting)))
                raise UpFailed(f"the {child.name} process does not get ready: {child.last_words()} (log: {child.log})")
            self.progress.tick()
            time.sleep(TICK_SECONDS if waiting else 0)

    def _watch(self) -> None:
        """Look after the children and the database; both surfaces and the cluster live through its restart."""
        self.supervisor.watch()
        if not self._embedded or time.monotonic() - self._looked < DATABASE_SECONDS:
            return
        self._looked = time.monotonic()
        if not databases.embedded_server().is_running():
            self._say("PostgreSQL has ended; starting it again")
            databases.embedded_server().revive()

    def _say_ready(self, seconds: float, demo: DemoRun | None) -> None:
        where = "PostgreSQL 18 in " + str(self.home / "pg") if databases.uses_embedded() else "DATABASE_URL"
        address = f"http://127.0.0.1:{self.options.port}"
        self.console.print(f"[bold green]Ductor is ready[/] after {seconds:.1f} s")
        rows = [("tenant surface", address), ("operator surface", f"http://127.0.0.1:{self.options.operator_port}")]
        rows += [("database", where), ("logs", str(self.home / "logs"))]
        rows.append(("first operator", "python3 manage.py ductor operators create you@example.com"))
        # Not 127.0.0.1 for people: browsers keep passkeys for names of hosts only.
        rows.append(("pages", f"http://localhost:{self.options.port}/app/"))
        slug = next(iter(demo.keys)) if demo else "<tenant>"
        rows.append(("first member", f"python3 manage.py ductor members invite {slug} you@example.com --role owner"))
        if demo:
            rows += [(f"key of {slug}", key) for slug, key in demo.keys.items()]
            key = next(iter(demo.keys.values()))
            rows.append(("try", f"curl -H 'Authorization: Bearer {key}' {address}/api/v1/tasks?limit=1"))
        for name, value in rows:
            # Not wrapped: keys and commands are copied from here.
            self.console.print(f"  {name:<17}{value}", soft_wrap=True, markup=False)

    def _say(self, text: str) -> None:
        try:
            self.progress.close()
            self.console.print(text, markup=False)
        except OSError:
            # The terminal was closed: that must not keep anything from being stopped, nor make it a failure.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)
            os.close(nowhere)

    def _reset(self) -> None:
        if not databases.uses_embedded():
            raise UpFailed("--reset removes the embedded database only; a named server's you remove yourself")
        server = databases.embedded_server()
        if not self.options.yes:
            if not sys.stdin.isatty():
                raise UpFailed("--reset asks before it removes the database: add --yes where nobody can answer")
            answer = input(f"Remove {server.data} with every tenant, task and key in it? Type yes: ")
            if answer.strip().lower() != "yes":
                raise UpFailed("nothing was removed")
        self.progress.show("removing the database")
        server.destroy()
        (self.home / "demo.json").unlink(missing_ok=True)

    def _end(self) -> None:
        """Stop every process, the database last; a second signal hurries the processes, never the database."""
        if self.supervisor.children:
            self._say("stopping")
        self.supervisor.stop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        close_connections()
        if self._embedded:
            databases.embedded_server().release()


def drain_seconds() -> float:
    """Return how long a cluster drains.

    Raises:
        UpFailed: DUCTOR_DRAIN_SECONDS is no number of seconds.
    """
    text = os.environ.get("DUCTOR_DRAIN_SECONDS") or "25"
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text, re.ASCII):
        raise UpFailed(f"DUCTOR_DRAIN_SECONDS must be a number of seconds, not {text!r}")
    return float(text)


def close_connections() -> None:
    """Close this process's own database connections, if the demo has opened any."""
    from django.conf import settings

    if not settings.configured:
        return
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


def check_port(port: int, flag: str) -> None:
    """Refuse a port that somebody else listens on.

    Raises:
        UpFailed: with the port and the flag that chooses another one.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the server will do: a port whose last owner has just gone is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except PermissionError as error:
            raise UpFailed(f"port {port} needs root: choose one above 1023 with {flag} N") from error
        except OSError as error:
            raise UpFailed(f"port {port} is taken: stop what listens there, or choose another with {flag} N") from error


def answers(port: int) -> bool:
    """Say whether a surface reports itself ready."""
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health/ready", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
