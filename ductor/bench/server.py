"""A throw-away server with fsync on, migrated, and the measuring process on it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ductor.embedded import EmbeddedServer
from ductor.testrun import prepare_server

ROOT = Path(__file__).resolve().parents[2]


class BenchFailed(Exception):
    """The measuring process ended early; the message is its last line."""


def measure(*, quick: bool, only: Sequence[str], progress: Callable[[str], None]) -> dict[str, float]:
    """Run the bench on a server of its own and return its figures by name; with `only`, these parts of it.

    Raises:
        BenchFailed: a part of it failed.
        ServerFailed: the server does not start.
    """
    home = Path(tempfile.mkdtemp(prefix="ductor-bench-"))
    server = EmbeddedServer(home)
    try:
        server.acquire(progress)
        urls = prepare_server(server)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DUCTOR_", "DATABASE_"))}
        environment = {**kept, **urls, "DUCTOR_APPS": "ductor.bench", "DUCTOR_ROLE": "test"}
        environment |= {"DUCTOR_QUEUES": "default,bench-few,bench-many,bench-jain,bench-sql,bench-http,bench-start"}
        environment |= {"DJANGO_SETTINGS_MODULE": "ductor.settings"}
        _migrate(environment)
        options = [*(["--quick"] if quick else []), *(f"--{part}" for part in only)]
        return _run(environment, options, progress)
    finally:
        server.destroy(evict=True)
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def ended(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[None]:
    """Stop a process after the block, by force where it takes longer than so many seconds."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), "migrate", "--no-input", "--verbosity", "0"]
    subprocess.run(command, env={**environment, "DUCTOR_ROLE": "owner"}, check=True, cwd=ROOT)


def _run(environment: dict[str, str], options: Sequence[str], progress: Callable[[str], None]) -> dict[str, float]:
    command = [sys.executable, "-m", "ductor.bench.run", *options]
    last = ""
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = line.strip()
            if not last.startswith("{"):
                progress(last)
    if process.returncode != 0 or not last.startswith("{"):
        raise BenchFailed(last or "the measuring process said nothing")
    figures: dict[str, Any] = json.loads(last)
    return figures
