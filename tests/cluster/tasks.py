"""What became of the chores: read as the owner, since a cluster's tasks are those of many tenants."""

from collections import Counter
from typing import Any

from tests.builders import rows, start
from tests.cluster.running import until

CUSTOMERS = "tenant_id <> '00000000-0000-7000-8000-000000000000'"


def chores(tenant: Any, name: str, count: int = 1, *, max_failures: int = 3, **input: Any) -> list[str]:
    """Start chores of one kind; returns their ids as text."""
    started = start(tenant, count, workflow=f"chore-{name}", input=input or None, max_failures=max_failures)
    return [str(task) for task in started]


def states() -> Counter[str]:
    found = rows(f"select state, count(*)::int from workflows_task where {CUSTOMERS} group by state")
    return Counter(dict(found))


def task(task_id: str) -> dict[str, Any]:
    columns = ("state", "attempt", "failures", "token")
    found = rows(f"select {', '.join(columns)} from workflows_task where id = %s", task_id)
    return dict(zip(columns, found[0], strict=True))


def until_states(seconds: float = 15.0, **wanted: int) -> None:
    until(lambda: states() == Counter(wanted), seconds=seconds, what=states)
