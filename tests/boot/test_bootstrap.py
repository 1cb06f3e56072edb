"""What manage.py does before Django: the environment, its stamp, its refusals, the role of a command."""

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ductor import installing
from ductor.bootstrap import main, missing_app, needs_database, role_for
from ductor.installing import Environment, InstallFailed, ProgressLine

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("qcluster --workers 2", "worker"),
        ("migrate", "owner"),
        ("makemigrations --check", "owner"),
        ("ductor init-db", "owner"),
        ("ductor tenants create acme", "owner"),
        ("ductor queues list", "owner"),
        ("ductor tasks list", "operator"),
        ("ductor --json tenants list", "owner"),
        ("up", "operator"),
        ("", "operator"),
    ],
)
def test_a_command_runs_in_the_role_of_what_it_is(line: str, role: str) -> None:
    assert role_for(line.split()) == role


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("", False),
        ("help", False),
        ("--version", False),
        ("up --once", False),
        ("test", False),
        ("check", False),
        ("ductor", False),
        ("ductor init-db", False),
        ("ductor tasks list --help", False),
        ("ductor tasks list", True),
        ("migrate", True),
        ("qcluster", True),
        ("shell", True),
    ],
)
def test_the_embedded_server_is_started_for_commands_that_may_ask_it(line: str, needs: bool) -> None:
    assert needs_database(line.split()) is needs


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ("", ""),
        ("ductor.demo", ""),
        (" tenants , ,ductor.demo.apps.DemoConfig", ""),
        ("tenants,no_such_app", "no_such_app"),
        ("no_such_app.apps.Config", "no_such_app.apps.Config"),
        (".", "."),
    ],
)
def test_an_app_that_can_not_be_found_is_named(names: str, missing: str) -> None:
    assert missing_app(names) == missing


@pytest.mark.parametrize("line", ["up --once", "check", "ductor tenants list", "qcluster"])
def test_an_app_that_can_not_be_found_is_one_line_before_anything_starts(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DUCTOR_APPS", "no_such_app")
    monkeypatch.setenv("DUCTOR_ROLE", os.environ["DUCTOR_ROLE"])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert main(["manage.py", *line.split()]) == 1
    told = capsys.readouterr().err
    assert told.startswith("ductor: DUCTOR_APPS names 'no_such_app'")
    assert (told.count("\n"), "PYTHONPATH" in told) == (1, True)


@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 14)])
def test_another_python_gets_one_line_and_code_2(
    version: tuple[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))

    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "manage.py"), run_name="__main__")

    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.count("\n") == 1
    assert f"this is Python {version[0]}.{version[1]}" in said


def test_before_the_environment_only_the_standard_library_is_imported() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import ductor.bootstrap; print(sorted(sys.modules))"
    # -S: without site-packages an import of anything else fails.
    done = subprocess.run([sys.executable, "-S", "-I", "-c", code, str(ROOT)], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "'django'" not in done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Environment:
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    (tmp_path / "requirements-dev.txt").write_text("# nothing more\n")
    return Environment(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Environment, list[str]]]:
    """An environment made by two processes at once, and what they printed."""
    root = tmp_path_factory.mktemp("project")
    (root / "requirements.txt").write_text("# nothing\n")
    (root / "requirements-dev.txt").write_text("# nothing more\n")
    code = "import sys; from pathlib import Path; from ductor.installing import Environment;"
    code += "print(Environment(Path(sys.argv[1])).prepare(dev=False))"
    command = [sys.executable, "-c", code, str(root)]
    runs = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    yield Environment(root), [run.communicate(timeout=120)[0].strip() for run in runs]


def test_two_processes_at_once_install_once(made: tuple[Environment, list[str]]) -> None:
    environment, printed = made

    assert sorted(printed) == ["False", "True"]
    assert environment.is_ready(dev=False)
    assert subprocess.run([str(environment.python), "-c", "import pip"]).returncode == 0


def test_a_change_of_the_requirements_asks_for_an_installation(made: tuple[Environment, list[str]]) -> None:
    environment, _ = made
    base = environment.root / "requirements.txt"
    before = base.read_text()

    assert not environment.is_ready(dev=True)
    base.write_text("# something else\n")
    assert not environment.is_ready(dev=False)
    base.write_text(before)
    assert environment.is_ready(dev=False)


def test_the_stamp_does_not_count_without_a_working_python(made: tuple[Environment, list[str]]) -> None:
    environment, _ = made
    hidden = environment.python.with_name("python.hidden")
    environment.python.rename(hidden)
    try:
        assert not environment.is_ready(dev=False)
    finally:
        hidden.rename(environment.python)


def test_no_network_is_one_line(made: tuple[Environment, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    environment, _ = made
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    base = environment.root / "requirements.txt"
    before = base.read_text()
    base.write_text("a-package-of-no-index\n")

    with pytest.raises(InstallFailed, match="no connection to the package index") as failure:
        environment.prepare(dev=False)
    assert "\n" not in str(failure.value)
    assert not environment.is_ready(dev=False)
    base.write_text(before)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("WARNING: Retrying (Retry(total=1)) after\nERROR: No matching distribution found for x", "no connection"),
        ("ERROR: No matching distribution found for x", "No matching distribution found for x"),
        ("", "pip gave no output"),
    ],
)
def test_what_pip_says_becomes_one_line(output: str, told: str) -> None:
    line = installing._explain_pip(output.splitlines(), Path("install.log"))

    assert told in line
    assert "\n" not in line


def test_a_python_without_venv_is_told_what_to_install() -> None:
    line = installing._explain_venv("Error: ensurepip is not available", Path(".venv"))

    assert f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in line


def test_a_folder_that_can_not_be_written_is_one_line(project: Environment) -> None:
    (project.root / ".venv.lock").mkdir()

    with pytest.raises(InstallFailed, match=r"can't write .*\.venv\.lock"):
        project.prepare(dev=False)


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine(sys.stderr)
    for text in ("fetching package 1: django", "fetching package 1: django", "installing 2 packages"):
        line.show(text)
    line.tick()
    line.close()

    assert capsys.readouterr().err == "fetching package 1: django\ninstalling 2 packages\n"
