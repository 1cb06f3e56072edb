"""`manage.py test`: what it runs, and that its server is gone afterwards however it ends."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ductor import testrun
from ductor.embedded import EmbeddedServer
from tests.boot.clones import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "only_pytest"),
    [
        ([], False),
        (["-x", "-k", "fair"], False),
        (["tests/boot"], True),
        (["-x", "tests/boot/test_testrun.py::test_a_path_means_only_pytest"], True),
        (["nowhere/at/all"], False),
    ],
)
def test_a_path_means_only_pytest(arguments: list[str], only_pytest: bool) -> None:
    assert testrun._names_path(arguments) is only_pytest


def test_the_shells_settings_do_not_reach_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "DUCTOR_ROLE", "DUCTOR_APPS", "DUCTOR_PASSWORD_WEB", "DUCTOR_TEST_FULL"):
        monkeypatch.setenv(name, "x")

    foreign = testrun._foreign()

    assert {"DATABASE_URL", "DUCTOR_ROLE", "DUCTOR_APPS", "DUCTOR_PASSWORD_WEB"} <= foreign
    assert not {"DUCTOR_TEST_FULL", "DUCTOR_HOME", "DUCTOR_DATABASE_URL_TEST", "PATH"} & foreign


def test_a_killed_runs_server_is_removed_by_the_next_and_a_running_ones_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Path(tempfile.mkdtemp(prefix="ductor-boot-"))
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    code = (
        "import os, sys; from pathlib import Path; from ductor.embedded import EmbeddedServer\n"
        "EmbeddedServer(Path(sys.argv[1])).acquire(); os.kill(os.getpid(), 9)"
    )
    killed, running = base / "ductor-test-killed", base / "ductor-test-running"
    subprocess.run([sys.executable, "-c", code, str(killed)], cwd=ROOT)
    server = EmbeddedServer(running)
    server.acquire()
    left_behind = EmbeddedServer(killed).pid()

    testrun.remove_leftovers()

    assert left_behind is not None
    assert not killed.exists()
    assert server.is_running()
    server.release()
    server.destroy()
    shutil.rmtree(base)


@pytest.fixture
def temporary() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="ductor-boot-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def run_tests(temporary: Path, test: str) -> "subprocess.Popen[str]":
    (temporary / "test_one.py").write_text(test)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUCTOR_")}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "test", str(temporary / "test_one.py"), "-c", "/dev/null"],
        cwd=ROOT,
        env={**environment, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.full
@pytest.mark.parametrize(("body", "code", "closing"), [("assert True", 0, "1 passed"), ("assert False", 1, "1 failed")])
def test_pytest_has_the_last_word(temporary: Path, body: str, code: int, closing: str) -> None:
    run = run_tests(temporary, f"def test_one():\n    {body}\n")
    output, _ = run.communicate(timeout=120)

    assert run.returncode == code
    assert closing in output.strip().splitlines()[-1]
    assert list(temporary.glob("ductor-test-*")) == []


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_nothing(temporary: Path, number: signal.Signals) -> None:
    run = run_tests(temporary, "import time\ndef test_one():\n    open('begun', 'w').close(); time.sleep(120)\n")
    begun = ROOT / "begun"
    try:
        until(begun.exists, 120)
        (home,) = temporary.glob("ductor-test-*")
        pid = EmbeddedServer(home).pid()
        assert pid is not None
        # As a terminal does with Ctrl-C: everyone in front of it is told.
        os.killpg(run.pid, number)

        output, _ = run.communicate(timeout=60)
        assert run.returncode == 128 + number, output
        assert list(temporary.glob("ductor-test-*")) == []
        assert not Path(f"/proc/{pid}/cwd").exists()
    finally:
        begun.unlink(missing_ok=True)
