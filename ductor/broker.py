"""Ductor's broker for django-q2: `async_task()` starts a Ductor task, results come from PostgreSQL.

django-q2 makes a broker wherever it has something to enqueue, to look up or to report. No task waits in a queue of
its own: what is enqueued is a task of the attached tenant, in the caller's transaction.
"""

from typing import Any, NoReturn

from django_q.brokers import Broker as BaseBroker
from django_q.signing import SignedPackage

from tenants.cache import system_keys
from tenants.errors import Fault
from tenants.principals import Principal


class AsyncTaskRefused(Fault):
    """This part of django-q2 is not served here: workers fetch their tasks from PostgreSQL themselves."""


class Broker(BaseBroker):
    """What `Q_CLUSTER["broker_class"]` names. `cache` is where django-q2 looks for cached results."""

    def __init__(self, list_key: str | None = None) -> None:
        from ductor.contrib.q2.results import StoredResults

        super().__init__(list_key)
        self.statistics = BaseBroker(list_key)
        self.cache = StoredResults(self.list_key)

    def enqueue(self, task: str) -> str:
        """Start a task of the attached tenant; joins the open transaction. Returns its id.

        Raises:
            ScopeMissing: no tenant is attached.
            UnknownWorkflow: the function or its hook is none of those that may run.
            InputInvalid: an argument is no JSON, or an option is not lawful.
            PolicyMissing, TenantFrozen, QuotaExceeded, QueueUnknown: the tenant may not start it now.
        """
        from ductor.contrib.q2.starting import start

        # Packed by `async_task()` a moment ago, in this process: no pickle comes from anywhere else.
        return start(SignedPackage.loads(task), principal=Principal.code())

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
            self.statistics.set_stat(key, value, timeout)

    def get_stat(self, key: str) -> Any:
        with system_keys():
            return self.statistics.get_stat(key)

    def get_stats(self, pattern: str) -> list[Any] | None:
        with system_keys():
            return self.statistics.get_stats(pattern)
