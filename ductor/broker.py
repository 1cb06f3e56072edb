"""Ductor's broker for django-q2: it keeps the cluster's statistics and takes no tasks.

django-q2's own brokers put tasks of no tenant into a queue without fairness or leases. Until `async_task()` lands in
the tenant's fair queue it is refused, so that no call is silently accepted and never run.
"""

from typing import Any, NoReturn

from django_q.brokers import Broker as BaseBroker

from tenants.cache import system_keys
from tenants.errors import Fault


class AsyncTaskRefused(Fault):
    """django-q2's async_task() and schedule() are not served here: write a Workflow and call its start()."""


class Broker(BaseBroker):
    """What `Q_CLUSTER["broker_class"]` names."""

    def enqueue(self, task: Any) -> NoReturn:
        raise AsyncTaskRefused

    def dequeue(self) -> NoReturn:
        raise AsyncTaskRefused

    def queue_size(self) -> int:
        """No task waits in a django-q2 queue."""
        return 0

    def lock_size(self) -> int:
        return 0

    def ping(self) -> bool:
        return True

    def info(self) -> str:
        return "Ductor"

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        with system_keys():
            super().set_stat(key, value, timeout)

    def get_stat(self, key: str) -> Any:
        with system_keys():
            return super().get_stat(key)

    def get_stats(self, pattern: str) -> list[Any] | None:
        with system_keys():
            return super().get_stats(pattern)
