"""Tenants with work at every stage, their exports, and hashes over all that a tenant's rows say."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ductor.tenant_archives import export_tenant, restore_tenant
from tenants.archives.rules import declared
from tenants.errors import DuctorError
from tenants.policy import set_freeze
from tenants.queries import TenantView
from tests.builders import PRINCIPAL, build_key, build_tenant, rows, start
from tests.database import as_role
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
    """Export a tenant; returns the file."""
    file = folder / name
    with as_role("owner"):
        export_tenant(tenant=tenant, target=file, principal=PRINCIPAL)
    return file


def freeze(tenant: TenantView, *names: str) -> None:
    """Freeze exactly these of a tenant's doings; a restore needs admission and claims, which are the default."""
    with as_role("operator"):
        set_freeze(tenant_id=tenant.id, freeze=set(names or ("admission", "claims")), principal=PRINCIPAL)


def unfreeze(tenant: TenantView) -> None:
    with as_role("operator"):
        set_freeze(tenant_id=tenant.id, freeze=set(), principal=PRINCIPAL)


def restore(tenant: TenantView, file: Path, **options: Any) -> dict[str, Any]:
    """Restore a tenant; returns what became of it."""
    with as_role("owner"):
        return restore_tenant(tenant=tenant, source=file, principal=PRINCIPAL, reason="drill", **options)


def assert_refused(tenant: TenantView, file: Path, error: type[DuctorError], says: str = "") -> None:
    """Check that a restore is refused with this error and these words, and that no row of the tenant moved."""
    before = hashes(tenant)
    with pytest.raises(error) as refused:
        restore(tenant, file)
    assert says in refused.value.message
    assert hashes(tenant) == before
    assert rows("select count(*) from tenants_act where act = 'tenant.restore'") == [(0,)]


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
