"""Tenants with work at every stage, their exports, and hashes over all that a tenant's rows say."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tenants.archives.rules import declared
from tenants.queries import TenantView
from tests.builders import build_key, build_tenant, rows, start
from tests.commands.running import Ran, ductor
from workflows.claims import Claim, Outcome, StepRecord, finish, record_steps

ROWS = "select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {} t where tenant_id = %s"


def build_worked_tenant(slug: str) -> TenantView:
    """A tenant with tasks queued, waiting, leased and ended, with keys and steps, and an API key."""
    tenant = build_tenant(slug)
    build_key(tenant)
    start(tenant, key="first", input={"é": ["“quoted” \\ back\ttab\nline", None, 1.5]})
    start(tenant, 5, priority=-1)
    start(tenant, 2, delay_seconds=3600)
    taken = claim_of(tenant, 3)
    now = datetime.now(UTC)
    steps = [StepRecord(one, "pick", 1, "completed", {"picked": [1, None]}, None, now, now) for one in taken]
    assert record_steps(records=steps) == set()
    end(taken[:2])
    return tenant


def claim_of(tenant: TenantView, limit: int = 50, worker: str = "w1") -> list[Claim]:
    """Claim tasks of one tenant alone."""
    sql = "select task_id, token from workflows_claim_tasks(%s, 'default', %s, 50, 60, array[%s]::uuid[])"
    return [Claim(tenant.id, task_id, worker, token) for task_id, token in rows(sql, worker, limit, tenant.id)]


def leased(tenant: TenantView) -> list[Claim]:
    """The claims that a tenant's leased tasks stand under."""
    sql = "select id, worker, token from workflows_task where tenant_id = %s and state = 'leased'"
    return [Claim(tenant.id, *row) for row in rows(sql, tenant.id)]


def end(claims: list[Claim]) -> None:
    """Finish claims as completed."""
    assert finish(outcomes=[Outcome(one, "completed", {"done": True}) for one in claims]) == set()


def hashes(tenant: TenantView) -> dict[str, str]:
    """A hash over each table's rows of a tenant."""
    return {table: rows(ROWS.format(table), tenant.id)[0][0] for table in declared()}


def export(tenant: TenantView, folder: Path, name: str = "tenant.zip") -> Path:
    """Export a tenant by the command; returns the file."""
    file = folder / name
    ran = ductor("tenants", "export", tenant.slug, "--to", str(file), "--json")
    assert (ran.code, ran.err) == (0, "")
    return file


def freeze(tenant: TenantView) -> None:
    assert ductor("tenants", "freeze", tenant.slug, "--reason", "restore").code == 0


def unfreeze(tenant: TenantView) -> None:
    assert ductor("tenants", "unfreeze", tenant.slug, "--reason", "restored").code == 0


def restore(tenant: TenantView, file: Path, *options: str) -> Ran:
    """Restore a tenant by the command."""
    return ductor("tenants", "restore", tenant.slug, "--from", str(file), "--reason", "drill", "--json", *options)


def refusal(ran: Ran) -> tuple[int, str]:
    """The exit code and error code of a command that was refused."""
    assert ran.out == ""
    return ran.code, json.loads(ran.err)["error"]["code"]


def members(file: Path) -> dict[str, bytes]:
    """The members of an export."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(file: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None], *, sealed: bool = True) -> Path:
    """Write an export anew with changed members and manifest; `sealed` brings hashes to what the members hold."""
    held = members(file)
    manifest = json.loads(held.pop("manifest.json"))
    change(held, manifest)
    if sealed:
        for table, entry in manifest.get("tables", {}).items():
            if f"{table}.copy" in held:
                entry["sha256"] = hashlib.sha256(held[f"{table}.copy"]).hexdigest()
    new = file.with_name(f"changed-{file.name}")
    with zipfile.ZipFile(new, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
        archive.writestr("manifest.json", json.dumps(manifest))
    return new
