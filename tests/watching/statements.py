"""Notes each statement to a tenant table that names no `tenant_id`, in the suite's process and those it starts.

Installed by `DUCTOR_APPS` in all of them. What is noted goes to one file, which `tests.database.end_test` reads.
"""

import os
import re
from pathlib import Path
from typing import Any

from tenants.db.guard import names_tenant_table

FILE = "DUCTOR_TEST_UNNAMED"
_STRUCTURE = re.compile(
    r"(?:\s*--[^\n]*\n)*\s*(?:create|alter|drop|comment|grant|revoke|analyze|vacuum)\b", re.IGNORECASE
)

# Product statements that read over all tenants by design, by how they begin, and why they may.
OVER_ALL_TENANTS = {
    "select (select count(*) from tenants_turn where blocked = 0),": "doctor asks whether any tenant's work is claimed",
    "select count(*) from workflows_admission": "doctor counts what transactions left behind",
    "select count(*) from workflows_task where state = 'leased' and lease_expires_at": "doctor counts late leases",
}


def is_unnamed(sql: str) -> bool:
    """Say whether a statement goes to a tenant table's rows and names no tenant, without standing in the list."""
    if not names_tenant_table(sql) or "tenant_id" in sql or _STRUCTURE.match(sql):
        return False
    return not flat(sql).startswith(tuple(OVER_ALL_TENANTS))


def flat(sql: str) -> str:
    """Return a statement on one line."""
    return " ".join(sql.split())


def watch(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute wrapper of every connection."""
    if is_unnamed(str(sql)):
        line = f"{context['connection'].settings_dict.get('ROLE')}: {flat(str(sql))}\n"
        with Path(os.environ[FILE]).open("a") as noted:
            noted.write(line)
    return execute(sql, params, many, context)


def watch_new(connection: Any, **_: Any) -> None:
    """Receiver of `connection_created`."""
    if watch not in connection.execute_wrappers:
        connection.execute_wrappers.append(watch)


def take() -> list[str]:
    """Return what was noted since the last call."""
    path = Path(os.environ[FILE])
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    path.unlink()
    return lines
