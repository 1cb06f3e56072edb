"""One tenant exported to a file, and restored from it while the others run (contract S26)."""

import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError

from tenants.archives import archive, copying, staging
from tenants.archives.archive import Manifest
from tenants.audit import record
from tenants.errors import ArchiveInvalid, ArchiveMismatch, ReasonMissing
from tenants.policy import frozen_names
from tenants.principals import Principal
from tenants.queries import TenantView, get_policy
from tenants.restoring import hold_still, last_token
from tenants.scope import scope_of
from workflows.restoring import compare_tasks, prepare_tasks, recount

NEEDED = {"admission", "claims"}


def version() -> str:
    """Return Ductor's version."""
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())["project"]
    return str(project["version"])


def export_tenant(*, tenant: TenantView, target: Path, principal: Principal, reason: str = "") -> Manifest:
    """Write all rows of one tenant, of one moment, to a new file; returns what is in it.

    The act is audited before the file begins, so that no file is made that the audit does not know of.

    Raises:
        FileExistsError, OSError: there is a file of this name, or it can't be written.
    """
    if target.exists():
        raise FileExistsError(target)
    _record(tenant, "tenant.export", principal, reason, after={"version": version()})
    return copying.write(tenant=tenant, target=target, version=version())


def restore_tenant(
    *, tenant: TenantView, source: Path, principal: Principal, reason: str = "", dry_run: bool = False
) -> dict[str, Any]:
    """Put a tenant's work back as a file has it, in one transaction; returns what became of each table and of tasks.

    Every table's rule stands in its app's `archive_rules`. Nobody else's rows are read or written, and of nobody else a
    lock is taken. With `dry_run` nothing is locked and nothing changes.

    Raises:
        ReasonMissing: no reason for an act that the audit keeps.
        ArchiveInvalid: the file is damaged or does not fit this database.
        ArchiveMismatch: it is another tenant's, or contradicts the audit or the definitions that stand here.
        TenantNotFrozen, TenantBusy: the tenant's admission and claims are not frozen, or tasks of it are leased.
        QueueUnknown: a task stands in a queue that is not there.
        Contended: others held what was needed for too long.
        OSError: the file can't be read.
    """
    if not (reason or dry_run):
        raise ReasonMissing
    with archive.opened(source) as reader:
        manifest = reader.manifest
        if (manifest.tenant_id, manifest.slug) != (tenant.id, tenant.slug):
            raise ArchiveMismatch(
                f"The file is of tenant {manifest.slug} ({manifest.tenant_id}), not of {tenant.slug} ({tenant.id}).",
                seen=manifest.slug,
            )
        with scope_of(tenant.id):
            copying.stage(tenant_id=tenant.id, reader=reader)
            if not dry_run:
                hold_still(tenant_id=tenant.id)
            staging.refuse_disagreeing(tenant_id=tenant.id)
            tables = staging.compare(tenant_id=tenant.id)
            answer: dict[str, Any] = {"tables": tables, "tasks": asdict(compare_tasks(tenant_id=tenant.id))}
            if dry_run:
                return _about(manifest) | answer | {"in_the_way": _in_the_way(tenant)}
            answer["token"] = _put_in(tenant)
            counts = {table: [found["taken_out"], found["put_in"]] for table, found in tables.items()}
            after = _about(manifest) | answer | {"tables": counts}
            _record(tenant, "tenant.restore", principal, reason, after=after)
            return _about(manifest) | answer


def _put_in(tenant: TenantView) -> int:
    token = prepare_tasks(tenant_id=tenant.id, token=last_token(tenant_id=tenant.id))
    try:
        staging.put_in_place(tenant_id=tenant.id)
    except (IntegrityError, DataError) as error:
        raise ArchiveInvalid("Rows of the file contradict each other: nothing of it was put in.") from error
    recount(tenant_id=tenant.id)
    return token


def _about(manifest: Manifest) -> dict[str, str]:
    return {"made_at": manifest.made_at, "version": manifest.version, "sha256": manifest.sha256}


def _in_the_way(tenant: TenantView) -> list[str]:
    policy = get_policy(tenant_id=tenant.id)
    running = sorted(NEEDED - set(frozen_names(policy.frozen)))
    leased = [f"{policy.leased} tasks are leased"] if policy.leased else []
    return [f"{name} not frozen" for name in running] + leased


def _record(tenant: TenantView, act: str, principal: Principal, reason: str, *, after: dict[str, Any]) -> None:
    with scope_of(tenant.id):
        record(
            tenant_id=tenant.id,
            principal=principal,
            act=act,
            target_kind="tenant",
            target_id=str(tenant.id),
            reason=reason,
            after=after,
        )
