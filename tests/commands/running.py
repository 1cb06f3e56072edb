"""Runs `manage.py ductor …`: in this process, or as a process of its own where it counts."""

import contextlib
import io
import json
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ductor.bootstrap import role_for
from ductor.management.commands.ductor import Command
from tests.database import as_role, touch

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


def ductor(*arguments: str, stdin: bytes = b"") -> Ran:
    """Run a command in this process, on a connection of the role that manage.py would give it."""
    words = ["ductor", *arguments]
    out, err = io.StringIO(), io.StringIO()
    typed = io.TextIOWrapper(io.BytesIO(stdin))
    code: Any = 0
    with as_role(role_for(words)), patch("sys.stdin", typed):
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            # django-typer's own Django options speak typer's older dialect.
            warnings.filterwarnings("ignore", "In Typer, only the parameter", DeprecationWarning)
            try:
                Command().run_from_argv(["manage.py", *words])
            except SystemExit as end:
                code = end.code
    return Ran(int(code or 0), out.getvalue(), err.getvalue())


def ductor_process(*arguments: str, **environment: str) -> Ran:
    """Run a command as a process of its own."""
    touch()
    words = ["ductor", *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "django", *words],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ductor.settings", "DUCTOR_ROLE": role_for(words), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
