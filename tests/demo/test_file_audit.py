"""The demo's workflow on real files, through a real worker."""

import ast
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from ductor.demo import sources
from ductor.demo.workflows import file_audit
from tests import database
from tests.builders import build_tenant, rows
from workflows import registry
from workflows.turns import WorkerState, run_turn


@pytest.fixture(autouse=True)
def only_the_demo() -> Iterator[None]:
    with registry.isolated():
        registry.register(file_audit)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the standard library."""
    allowed = tmp_path / "library"
    allowed.mkdir()
    monkeypatch.setattr(sources, "roots", lambda: (allowed,))
    return allowed


def audit(*paths: Path | str) -> list[Any]:
    """Audit files and return each task as it ended."""
    database.touch()
    tenant = build_tenant(max_outstanding=100)
    tasks = file_audit.start_many([{"path": str(path)} for path in paths], tenant=tenant.id)
    worker = WorkerState("demo-worker", ("default",), lambda seconds: None, lambda: False)
    while run_turn(worker=worker).claimed:
        pass
    worker.close()
    connections.close_all()
    return [task.refresh() for task in tasks]


def test_files_of_the_standard_library_are_audited() -> None:
    files = [ast.__file__, os.__file__]
    done = audit(*files)

    for file, task in zip(files, done, strict=True):
        content = Path(file).read_bytes()
        nodes = list(ast.walk(ast.parse(content)))
        assert task.output == {
            "path": file,
            "sha256": hashlib.sha256(content).hexdigest(),
            "bytes": len(content),
            "lines": len(content.splitlines()),
            "functions": sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
            "classes": sum(isinstance(node, ast.ClassDef) for node in nodes),
            "parse_error": None,
        }
    assert rows("select count(*)::int from workflows_step") == [(6,)]


@pytest.mark.parametrize(
    ("content", "error", "lines"),
    [
        (b"def broken(:\n", "SyntaxError", 1),
        (b"x = '\0'\n", "SyntaxError", 1),
        (b"\xff\xfe\n", "SyntaxError", 1),
        (b"# coding: no-such\nx = 1\n", "SyntaxError", 2),
        (b"(" * 5000 + b")" * 5000, "", 1),
        (b"", None, 0),
        (b"x = 1", None, 1),
    ],
)
def test_what_does_not_parse_is_reported_and_no_failure(
    folder: Path, content: bytes, error: str | None, lines: int
) -> None:
    (folder / "some.py").write_bytes(content)
    (task,) = audit(folder / "some.py")

    assert task.state == "completed"
    assert task.output["lines"] == lines
    if error is None:
        assert task.output["parse_error"] is None
    else:
        assert task.output["parse_error"].startswith(error)
        assert "\0" not in task.output["parse_error"]


def test_other_files_are_refused(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.py"
    outside.write_text("password = 1\n")
    (folder / "link.py").symlink_to(outside)
    (folder / "table.csv").write_text("a,b\n")
    (folder / "package.py").mkdir()
    paths = [
        outside,
        folder / "link.py",
        folder / ".." / "secret.py",
        folder / "table.csv",
        folder / "package.py",
        folder / "missing.py",
        "/etc/passwd",
        "relative.py",
        "",
        "~/x.py",
    ]

    done = audit(*paths)

    assert {(task.state, task.attempt, task.error["class"]) for task in done} == {("failed", 1, "PermanentError")}
    assert rows("select count(*) from workflows_step where state = 'completed'") == [(0,)]


def test_the_files_of_a_machine_are_always_the_same_and_all_allowed() -> None:
    files = sources.source_files(300)

    assert files == sources.source_files(300)
    assert files[:20] == sources.source_files(20)
    assert len(set(files)) == 300
    assert all(sources.allowed(file) is not None for file in files)


def test_the_app_is_installed_by_its_setting() -> None:
    script = (
        "import django; django.setup(); from workflows import registry;"
        "print(registry.get('file-audit').version, registry.get('recovery-sweep').version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "DUCTOR_ROLE": "worker", "DUCTOR_APPS": "ductor.demo,tests.watching"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]
