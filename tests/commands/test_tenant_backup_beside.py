"""S26: while one tenant is exported or restored everybody else works, and what is killed has done nothing."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.db import transaction

from ductor.databases import connection_settings, psycopg_parameters
from tenants.archives import copying
from tenants.errors import TenantFrozen
from tenants.queries import TenantView
from tenants.scope import attach
from tests.builders import PRINCIPAL, assert_counters_true, build_policy, build_tenant, claim, complete, rows, start
from tests.commands.running import ROOT
from tests.commands.tenant_files import (
    build_worked_tenant,
    end,
    export,
    freeze,
    hashes,
    leased,
    restore,
    unfreeze,
)
from tests.database import owner, touch
from tests.races import wait_until
from workflows.admission import NewTask, enqueue
from workflows.cancelling import cancel
from workflows.queries import get_task

BUSY = "select count(*) from pg_stat_activity where application_name = 'ductor-owner' and wait_event_type = 'Lock'"


@contextmanager
def beside() -> Iterator["psycopg.Connection[Any]"]:
    """A transaction of the owner that stays open beside others and is rolled back in the end."""
    connection = psycopg.connect(**psycopg_parameters(connection_settings("owner")))
    connection.execute("set application_name = 'beside'")
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def command(*words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A `ductor tenants` command as a process of its own, killed at the end if it is still there."""
    touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "ductor", "tenants", *words],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ductor.settings", "DUCTOR_ROLE": "owner"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def gone() -> bool:
    """Whether the server has ended the sessions of other processes in the owner's name."""
    found = rows(
        "select count(*) from pg_stat_activity where application_name = 'ductor-owner' and pid <> pg_backend_pid()"
    )
    return found == [(0,)]


def build_lost_key(tmp_path: Path) -> tuple[TenantView, Path]:
    """A still, frozen tenant that lost a key since its export: whoever holds that key stops a restore in its middle."""
    tenant = build_worked_tenant("acme")
    end(leased(tenant))
    file = export(tenant, tmp_path)
    freeze(tenant)
    owner().execute("delete from workflows_taskkey where tenant_id = %s and key = 'first'", [tenant.id])
    return tenant, file


@contextmanager
def stopped_in_the_middle(tenant: TenantView, file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A restore that waits, its rows taken out and half put in, until the block ends."""
    key = "insert into workflows_taskkey (tenant_id, key, task_id, content_hash) values (%s, 'first', %s, '')"
    with command("restore", tenant.slug, "--from", str(file), "--reason", "drill") as process:
        with beside() as holder:
            holder.execute(key, [tenant.id, uuid4()])
            wait_until(lambda: rows(BUSY) == [(1,)])
            yield process
        process.wait(60)


def test_others_work_while_one_is_restored(tmp_path: Path) -> None:
    tenant, file = build_lost_key(tmp_path)
    other = build_tenant("globex")
    (task_id,) = rows("select id from workflows_task where tenant_id = %s limit 1", tenant.id)[0]
    both = [tenant.id, other.id]
    seen = get_task(tenant_id=tenant.id, task_id=task_id)
    with stopped_in_the_middle(tenant, file) as process:
        start(other, 20)
        taken = claim(10)
        assert {task.claim.tenant_id for task in taken} == {other.id}
        assert len(taken) == 10
        assert complete(taken) == set()
        assert complete(claim(9)) == set()
        (last,) = rows("select id from workflows_task where tenant_id = %s and state = 'queued'", other.id)[0]
        cancel(tenant_id=other.id, task_id=last, principal=PRINCIPAL)
        build_policy(other, max_outstanding=7, max_leases=3)
        with pytest.raises(TenantFrozen):
            start(tenant)
        assert get_task(tenant_id=tenant.id, task_id=task_id) == seen
        assert process.poll() is None
        assert rows("select tenant_id from tenants_load where tenant_id = any(%s) for update skip locked", both) == [
            (other.id,)
        ]
        others = hashes(other)
    assert process.returncode == 0
    assert hashes(other) == others
    assert rows("select count(*) from workflows_taskkey where key = 'first'") == [(1,)]
    assert_counters_true()
    unfreeze(tenant)
    assert complete(claim(3)) == set()
    assert_counters_true()


def test_a_restore_that_is_killed_has_done_nothing(tmp_path: Path) -> None:
    tenant, file = build_lost_key(tmp_path)
    other = build_worked_tenant("globex")
    before = [hashes(tenant), hashes(other)]
    with stopped_in_the_middle(tenant, file) as process:
        process.kill()
        process.wait()
    wait_until(gone)
    assert [hashes(tenant), hashes(other)] == before
    restore(tenant, file)
    assert hashes(other) == before[1]
    assert_counters_true()


def test_a_start_that_was_open_at_the_freeze_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """Its rows came before the freeze and would be committed after the restore, uncounted."""
    tenant = build_worked_tenant("acme")
    end(leased(tenant))
    file = export(tenant, tmp_path)
    touch()
    with pytest.raises(TenantFrozen), attach(tenant.id), transaction.atomic():
        task = NewTask(workflow="order-review", version=1, input={"order": 1}, key="late")
        enqueue(tenant_id=tenant.id, tasks=[task], principal=PRINCIPAL)
        with command("freeze", "acme", "--reason", "restore") as freezing:
            assert freezing.wait(60) == 0
        with command("restore", "acme", "--from", str(file), "--reason", "drill") as restoring:
            assert restoring.wait(60) == 0
    assert rows("select count(*) from workflows_task") == [(8,)]
    assert rows("select key from workflows_taskkey") == [("first",)]
    assert_counters_true()


def test_an_export_is_of_one_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is committed while it runs is in none of its tables."""
    tenant = build_worked_tenant("acme")
    write = copying._write_table
    tables: list[str] = []

    def slowly(writer: Any, table: str, *rest: Any) -> Any:
        if not tables:
            owner().execute("update workflows_task set priority = 77 where tenant_id = %s", [tenant.id])
            owner().execute("delete from workflows_step where tenant_id = %s", [tenant.id])
        tables.append(table)
        return write(writer, table, *rest)

    monkeypatch.setattr(copying, "_write_table", slowly)
    file = export(tenant, tmp_path)
    assert len(tables) > 10
    with zipfile.ZipFile(file) as archive:
        assert archive.read("workflows_step.copy").count(b"\n") == 3
        assert b"77" not in archive.read("workflows_task.copy").split(b"\t")
    assert rows("select count(*) from workflows_step") == [(0,)]


def test_an_export_that_is_killed_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    target = tmp_path / "acme.zip"
    with command("export", tenant.slug, "--to", str(target)) as process, beside() as holder:
        holder.execute("lock table workflows_step in access exclusive mode")
        wait_until(lambda: rows(BUSY) == [(1,)])
        process.kill()
        process.wait()
        assert not target.exists()
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    wait_until(gone)


def test_an_export_that_fails_leaves_no_file_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tenant = build_tenant("acme")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copying, "_write_table", full)
    with pytest.raises(OSError, match="No space left"):
        export(tenant, tmp_path)
    assert list(tmp_path.iterdir()) == []
