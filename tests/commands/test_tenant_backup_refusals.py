"""S26: what is no good to restore from is refused with its reason, and nothing has moved."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tenants.archive_rules import RULES
from tenants.archives.rules import Rule, declared
from tenants.db.guard import adopted_tables, tenant_tables
from tenants.errors import (
    ArchiveInvalid,
    ArchiveMismatch,
    PolicyMissing,
    QueueUnknown,
    RuleMissing,
    TenantNotFrozen,
)
from tenants.queries import TenantView
from tests.builders import build_tenant, rows
from tests.commands.tenant_files import (
    assert_refused,
    build_worked_tenant,
    end,
    export,
    freeze,
    hashes,
    leased,
    restore,
    rewritten,
)
from tests.database import owner
from workflows.errors import TenantBusy

Change = Callable[[dict[str, bytes], dict[str, Any]], None]
DEFINITION = """insert into workflows_definition (tenant_id, id, name, version, checksum, graph)
  values (%s, %s, 'n', 1, %s, '1')"""


def build_still_tenant(slug: str = "acme") -> TenantView:
    """A worked tenant with no lease left."""
    tenant = build_worked_tenant(slug)
    end(leased(tenant))
    return tenant


def test_a_tenant_that_is_not_still(tmp_path: Path) -> None:
    tenant = build_worked_tenant("acme")
    file = export(tenant, tmp_path)
    assert_refused(tenant, file, TenantNotFrozen)
    for frozen, left in {"admission": "claims", "claims": "admission"}.items():
        freeze(tenant, frozen, "timers", "signals")
        assert_refused(tenant, file, TenantNotFrozen)
        assert restore(tenant, file, dry_run=True)["in_the_way"] == [f"{left} not frozen", "1 tasks are leased"]
    freeze(tenant)
    assert_refused(tenant, file, TenantBusy)
    assert restore(tenant, file, dry_run=True)["in_the_way"] == ["1 tasks are leased"]
    end(leased(tenant))
    assert restore(tenant, file, dry_run=True)["in_the_way"] == []
    restore(tenant, file)


def test_a_tenant_without_a_policy(tmp_path: Path) -> None:
    tenant = build_tenant("acme", policy=False)
    assert_refused(tenant, export(tenant, tmp_path), PolicyMissing)


def test_another_tenant_s_file(tmp_path: Path) -> None:
    tenant, other = build_still_tenant(), build_tenant("globex")
    file = export(other, tmp_path)
    freeze(tenant)
    assert_refused(tenant, file, ArchiveMismatch)
    assert_refused(tenant, rewritten(file, lambda held, manifest: manifest.update(slug="acme")), ArchiveMismatch)


def _spoil(name: str) -> Change:
    """What may be wrong with a file itself."""

    def change(held: dict[str, bytes], manifest: dict[str, Any]) -> None:
        tables = manifest["tables"]
        task = tables["workflows_task"]
        match name:
            case "another format":
                manifest["format"] = 2
            case "no tables":
                del manifest["tables"]
            case "a column less":
                del task["columns"]["alone"]
            case "a column of another type":
                task["columns"]["token"] = "integer"
            case "a column more":
                task["columns"]["colour"] = "text"
            case "a table less":
                del tables["workflows_step"], held["workflows_step.copy"]
            case "a table more":
                tables["workflows_signal"] = task
                held["workflows_signal.copy"] = b""
            case "a member more":
                held["readme.txt"] = b"hello"
            case "a member less":
                del held["tenants_act.copy"]
            case "a row less":
                held["workflows_task.copy"] = held["workflows_task.copy"].split(b"\n", 1)[1]
            case "no rows but other text":
                held["workflows_task.copy"] = b"\x00\xff"
            case "a key twice":
                held["workflows_taskkey.copy"] *= 2
                tables["workflows_taskkey"]["rows"] *= 2
            case "a step without its task":
                step = held["workflows_step.copy"]
                task_id = step.split(b"\t")[list(tables["workflows_step"]["columns"]).index("task_id")]
                held["workflows_step.copy"] = step.replace(task_id, str(uuid4()).encode())
            case "a key that its task does not name":
                held["workflows_taskkey.copy"] = held["workflows_taskkey.copy"].replace(b"first", b"other")
            case "an ended task that is queued":
                held["workflows_task.copy"] = held["workflows_task.copy"].replace(b"completed", b"queued")
            case "a state that is none":
                held["workflows_task.copy"] = held["workflows_task.copy"].replace(b"\twaiting\t", b"\tsleeping\t")

    return change


FAULTS = {
    "another format": "format 2",
    "no tables": "no manifest",
    "a column less": "differ from these: workflows_task",
    "a column of another type": "differ from these: workflows_task",
    "a column more": "differ from these: workflows_task",
    "a table less": "differ from these: workflows_step",
    "a table more": "differ from these: workflows_signal",
    "a member more": "exactly the tables",
    "a member less": "exactly the tables",
    "a row less": "7 rows and not 8",
    "no rows but other text": "can't be read",
    "a key twice": "contradict each other",
    "a step without its task": "contradict each other",
    "a key that its task does not name": "the keys of the file contradict",
    "an ended task that is queued": "contradicts its end",
    "a state that is none": "contradicts its end",
}


def test_a_file_that_is_not_right(tmp_path: Path) -> None:
    tenant = build_still_tenant()
    file = export(tenant, tmp_path)
    freeze(tenant)
    for fault, says in FAULTS.items():
        assert_refused(tenant, rewritten(file, _spoil(fault)), ArchiveInvalid, says)
    restore(tenant, rewritten(file, lambda held, manifest: None))


def test_a_damaged_file(tmp_path: Path) -> None:
    tenant = build_still_tenant()
    file = export(tenant, tmp_path)
    freeze(tenant)
    text = rewritten(
        file,
        lambda held, _: held.update({"workflows_task.copy": held["workflows_task.copy"].replace(b"order", b"ordre")}),
        sealed=False,
    )
    assert_refused(tenant, text, ArchiveInvalid, "not those that the manifest names")
    whole = file.read_bytes()
    for content, says in ((whole[:-30], "cut short"), (b"", "no export"), (_flipped(whole), "damaged")):
        text.write_bytes(content)
        assert_refused(tenant, text, ArchiveInvalid, says)


def _flipped(content: bytes) -> bytes:
    """One bit of the tasks' compressed rows turned over."""
    place = content.index(b"workflows_task.copy") + 60
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_row_of_another_tenant_in_the_file(tmp_path: Path) -> None:
    tenant, other = build_still_tenant(), build_tenant("globex")
    owner().execute(DEFINITION, [tenant.id, uuid4(), "c"])
    file = export(tenant, tmp_path)
    freeze(tenant)
    before = hashes(other)
    for table in ("workflows_task", "tenants_act", "tenants_apikey", "workflows_definition"):

        def smuggle(held: dict[str, bytes], _: dict[str, Any], member: str = f"{table}.copy") -> None:
            first, rest = held[member].split(b"\n", 1)
            held[member] = first.replace(str(tenant.id).encode(), str(other.id).encode()) + b"\n" + rest

        assert_refused(tenant, rewritten(file, smuggle), ArchiveInvalid, f"1 rows of {table} belong to another tenant")
    assert hashes(other) == before


def test_an_audit_that_says_something_else(tmp_path: Path) -> None:
    tenant = build_still_tenant()
    file = export(tenant, tmp_path)
    freeze(tenant)

    def forge(held: dict[str, bytes], _: dict[str, Any]) -> None:
        held["tenants_act.copy"] = held["tenants_act.copy"].replace(b"policy.set", b"policy.not")

    assert_refused(tenant, rewritten(file, forge), ArchiveMismatch, "1 rows of tenants_act")


def test_a_definition_that_has_another_shape_here(tmp_path: Path) -> None:
    tenant = build_still_tenant()
    owner().execute(DEFINITION, [tenant.id, uuid4(), "before"])
    file = export(tenant, tmp_path)
    freeze(tenant)
    owner().execute("delete from workflows_definition where tenant_id = %s", [tenant.id])
    owner().execute(DEFINITION, [tenant.id, uuid4(), "after"])
    assert_refused(tenant, file, ArchiveMismatch, "1 rows of workflows_definition")
    owner().execute("update workflows_definition set checksum = 'before' where tenant_id = %s", [tenant.id])
    restore(tenant, file)
    assert rows("select count(*) from workflows_definition") == [(1,)]


def test_a_queue_that_is_not_there(tmp_path: Path) -> None:
    tenant = build_still_tenant()
    owner().execute("update workflows_task set queue = 'lost' where tenant_id = %s and state = 'queued'", [tenant.id])
    file = export(tenant, tmp_path)
    freeze(tenant)
    assert_refused(tenant, file, QueueUnknown, "lost")


def test_every_tenant_table_has_a_rule_with_its_reason() -> None:
    """A table that nobody thought of is refused by name, where it is exported and where it is restored."""
    rules = declared()
    assert set(rules) == tenant_tables() | adopted_tables()
    assert all(rule.reason and bool(rule.key) == (rule.rule is Rule.ADD) for rule in rules.values())


def test_a_table_without_a_rule_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tenant = build_tenant("acme")
    monkeypatch.delitem(RULES, "tenants_invitation")
    with pytest.raises(RuleMissing, match="tenants_invitation"):
        export(tenant, tmp_path)
    assert list(tmp_path.iterdir()) == []
