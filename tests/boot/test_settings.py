"""Environment variables that can't be used end in one line that names them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ductor.cluster_settings import SettingInvalid, lease_and_heartbeat, number_from

ROOT = Path(__file__).resolve().parents[2]


def test_the_heartbeat_follows_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUCTOR_LEASE_SECONDS", raising=False)
    monkeypatch.delenv("DUCTOR_HEARTBEAT_SECONDS", raising=False)
    assert lease_and_heartbeat() == (60.0, 15.0)
    monkeypatch.setenv("DUCTOR_LEASE_SECONDS", "2")
    assert lease_and_heartbeat() == (2.0, 0.5)
    monkeypatch.setenv("DUCTOR_HEARTBEAT_SECONDS", "1")
    assert lease_and_heartbeat() == (2.0, 1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DUCTOR_LEASE_SECONDS", "x"),
        ("DUCTOR_LEASE_SECONDS", "nan"),
        ("DUCTOR_LEASE_SECONDS", "-1"),
        ("DUCTOR_LEASE_SECONDS", "0"),
        ("DUCTOR_LEASE_SECONDS", "1e9"),
        ("DUCTOR_HEARTBEAT_SECONDS", "31"),
        ("DUCTOR_HEARTBEAT_SECONDS", "soon"),
    ],
)
def test_a_lease_that_would_run_out_between_two_beats_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.delenv("DUCTOR_LEASE_SECONDS", raising=False)
    monkeypatch.delenv("DUCTOR_HEARTBEAT_SECONDS", raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingInvalid, match=name):
        lease_and_heartbeat()


@pytest.mark.parametrize("value", ["x", "0", "501", "1.5", "１"])
def test_a_number_out_of_its_range_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("DUCTOR_BATCH", value)
    with pytest.raises(SettingInvalid, match="DUCTOR_BATCH"):
        number_from("DUCTOR_BATCH", default=100, least=1, most=500)


def test_blanks_around_names_are_no_part_of_them() -> None:
    names = {
        "DUCTOR_APPS": " ductor.demo ,",
        "DUCTOR_QUEUES": "default, reports ,",
        "DUCTOR_ALLOWED_HOSTS": "a.example , b",
    }
    say = "from ductor import settings as s; print(s.DUCTOR_APPS, s.DUCTOR_QUEUES, s.ALLOWED_HOSTS)"
    done = subprocess.run(
        [sys.executable, "-c", say], cwd=ROOT, env={**os.environ, **names}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == "['ductor.demo'] ['default', 'reports'] ['a.example', 'b']", done.stderr


@pytest.mark.parametrize("line", ["check", "up --no-demo"])
@pytest.mark.parametrize("name", ["DUCTOR_WORKERS", "DUCTOR_LEASE_SECONDS", "DUCTOR_BATCH"])
def test_a_command_says_so_in_one_line(name: str, line: str) -> None:
    environment = {**os.environ, name: "x", "DUCTOR_ROLE": "operator"}
    command = [sys.executable, "manage.py", *line.split()]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ductor: {name} must be a ")
    assert done.stderr.count("\n") == 1
