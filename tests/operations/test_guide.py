"""docs/operations.md, followed from an empty server to a restored backup; and the files that it names."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.make_env import PLACE, ROLES, TEMPLATES
from deploy.make_env import main as make_env
from ductor.postgres import binaries
from tests.architecture.sources import ROOT
from tests.architecture.test_docs import rows_of
from tests.boot.clones import NamedServer, free_port, until
from tests.operations.guide import GUIDE, UNITS, Unit, blocks, read_env, shell

ADMIN = "postgresql://admin:secret@db.example.com:5432/ductor"


def test_each_process_has_secrets_of_its_own_and_no_other_ones() -> None:
    own = {name: set(read_env(TEMPLATES / f"{name}.env")) for name in ("web", "operator", "cluster", "common")}
    urls = {name: {key for key in found if "DATABASE_URL" in key} for name, found in own.items()}
    assert urls == {
        "web": {"DUCTOR_DATABASE_URL_WEB"},
        "operator": {"DUCTOR_DATABASE_URL_OPERATOR"},
        "cluster": {"DUCTOR_DATABASE_URL_WORKER"},
        "common": set(),
    }
    files = {name: Unit(name).files for name in UNITS}
    assert files == {
        "ductor-web": ["common.env", "web.env"],
        "ductor-operator": ["common.env", "operator.env"],
        "ductor-cluster": ["common.env", "cluster.env"],
    }
    assert len({Unit(name).service["User"] for name in UNITS}) == 3


def test_every_variable_of_the_examples_is_documented() -> None:
    documented = (ROOT / "docs/configuration.md").read_text()
    for template in TEMPLATES.glob("*.env"):
        for name in read_env(template):
            assert f"| `{name}` |" in documented, f"{name} in {template.name}"


def test_units_name_users_folders_and_modules_that_exist() -> None:
    made = (ROOT / "deploy/systemd/ductor.sysusers.conf").read_text()
    for name in UNITS:
        unit = Unit(name)
        assert f"u {unit.service['User']} " in made
        assert unit.service["NoNewPrivileges"] == "yes"
    started = [" ".join(Unit(name).command(ROOT)[1:]) for name in UNITS]
    assert started == ["-m ductor.serving web", "-m ductor.serving operator", "manage.py qcluster"]
    assert "d /run/ductor " in (ROOT / "deploy/systemd/ductor.tmpfiles.conf").read_text()


def test_the_files_are_filled_for_their_maker_alone_and_never_written_over(tmp_path: Path) -> None:
    roles = tmp_path / "roles.json"
    roles.write_text('{"db.test:5433": {' + ", ".join(f'"ductor_{role}": "p@{role}"' for role in ROLES) + "}}")
    target = tmp_path / "made"
    assert make_env([str(roles), "db.test:5433/work?sslmode=require", str(target)]) == 0
    made = {path.name: path.read_text() for path in target.iterdir()}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in target.iterdir())
    assert made["userlist.txt"].splitlines() == [
        f'"ductor_{role}" "p@{role}"' for role in ("web", "operator", "worker")
    ]
    url = "postgresql://ductor_worker:p%40worker@db.test:5433/work?sslmode=require"
    assert read_env(target / "cluster.env")["DUCTOR_DATABASE_URL_WORKER"] == url
    keys = [read_env(target / f"{name}.env") for name in ("web", "operator", "cluster")]
    secrets = [found.get("DUCTOR_SECRET_KEY") or found["DUCTOR_OPERATOR_SECRET_KEY"] for found in keys]
    assert len(set(secrets)) == 3
    assert min(map(len, secrets)) >= 50
    assert make_env([str(roles), "db.test:5433/work", str(target)]) == 1
    assert make_env([str(roles), "elsewhere:1/x", str(tmp_path / "other")]) == 1
    assert not (tmp_path / "other").exists()
    assert {path.name: path.read_text() for path in target.iterdir()} == made
    assert make_env([]) == 2


def test_roles_and_processes_of_the_guide_are_the_ones_there_are() -> None:
    named = {row[1].strip("`").removesuffix(".service") for row in rows_of("docs/operations.md", "## What runs where")}
    assert named >= set(UNITS)
    for words in ("ignore_startup_parameters", "DATABASE_DIRECT_URL", "--enable-row-security", "--no-tables"):
        assert words in GUIDE


@pytest.fixture
def server() -> Iterator[NamedServer]:
    base = Path(tempfile.mkdtemp(prefix="ductor-guide-"))
    running = NamedServer(base)
    yield running
    running.stop()
    shutil.rmtree(base)


class Follower:
    """Somebody who follows the guide: gives its commands, and starts its units where it says so."""

    def __init__(self, folder: Path, server: NamedServer) -> None:
        self.folder = folder
        self.server = server
        self.web, self.operator = free_port(), free_port()
        self.running: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "PATH": f"{ROOT / '.venv/bin'}:{binaries().parent / 'pginstall/bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }

    def give(self, block: str) -> str:
        changes = {
            ADMIN: self.server.url.rpartition("/")[0] + "/ductor",
            ADMIN.rpartition("/")[0]: self.server.url.rpartition("/")[0],
            PLACE: f"127.0.0.1:{self.server.port}/ductor",
            "db.example.com:5432": f"127.0.0.1:{self.server.port}",
            "127.0.0.1:8000": f"127.0.0.1:{self.web}",
            "127.0.0.1:8001": f"127.0.0.1:{self.operator}",
            "python3 manage.py": f"{sys.executable} {ROOT / 'manage.py'}",
            "python3 deploy": f"{sys.executable} {ROOT / 'deploy'}",
            "$(.venv/bin/python": f"$({sys.executable}",
        }
        for old, new in changes.items():
            block = block.replace(old, new)
        done = shell(block, folder=self.folder, environment=self.environment)
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start_units(self) -> None:
        """Start what the units start, with their environment files as the guide has made them."""
        ports = {"DUCTOR_PORT": str(self.web), "DUCTOR_OPERATOR_PORT": str(self.operator)}
        for name in UNITS:
            unit = Unit(name)
            home = self.folder / name
            home.mkdir()
            own = {"DUCTOR_HOME": str(home), "DUCTOR_WORKERS": "2", "DUCTOR_EMAIL_URL": ""}
            variables = {**self.environment, **unit.variables(self.folder / "env-files"), **ports, **own}
            command = [sys.executable, *unit.command(ROOT)[1:]]
            with (home / "log").open("wb") as log:
                process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT)
            self.running.append(process)
        until(lambda: all(map(self._ready, (self.web, self.operator))), 60, self.logs)
        until(lambda: "qcluster ready" in self.logs(), 60, self.logs)

    def stop_units(self) -> list[int]:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        return [process.wait(60) for process in self.running]

    def logs(self) -> str:
        return "".join((self.folder / name / "log").read_text() for name in UNITS)

    def _ready(self, port: int) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.mark.full
def test_the_guide_leads_from_an_empty_server_to_a_finished_task_and_a_restored_backup(
    tmp_path: Path, server: NamedServer
) -> None:
    follower = Follower(tmp_path, server)
    said = []
    try:
        for block in blocks():
            if "/health/ready" in block:
                follower.start_units()
            said.append(follower.give(block))
    finally:
        codes = follower.stop_units()
    assert "".join(said).count("no issues") == 2
    assert '"state":"completed"' in "".join(said).replace(" ", "")
    assert codes[-1] == 0
    assert "Traceback" not in follower.logs()
