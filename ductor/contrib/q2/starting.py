"""One django-q2 task becomes one Ductor task of the attached tenant."""

from typing import Any
from uuid import UUID

from django_q.conf import Conf

from ductor.contrib.q2 import functions, packages
from tenants.errors import ScopeMissing
from tenants.identity import SYSTEM_QUEUE, SYSTEM_TENANT_ID
from tenants.principals import Principal
from tenants.scope import attached
from workflows.starting import Start, start_tasks


def start(task: dict[str, Any], *, principal: Principal, source: str = "code", immediate: bool = False) -> str:
    """Start what django-q2 packed, in the caller's transaction; returns its id.

    Raises:
        ScopeMissing: no tenant is attached.
        UnknownWorkflow, InputInvalid: as in `packages.read`.
        PolicyMissing, TenantFrozen, QuotaExceeded, QueueUnknown: as in `start_tasks`.
    """
    tenant_id = attached()
    if tenant_id is None:
        raise ScopeMissing("async_task() runs for the attached tenant, and none is: wrap it in `attach(tenant_id)`.")
    path, document = packages.read(task)
    begin = Start(
        functions.PREFIX + path,
        functions.VERSION,
        document,
        queue=queue_of(tenant_id, document["links"][0]["cluster"]),
        id=UUID(hex=task["id"]),
    )
    start_tasks(tenant_id=tenant_id, starts=[begin], principal=principal, immediate=immediate, source=source)
    return str(task["id"])


def queue_of(tenant_id: UUID, cluster: str | None) -> str | None:
    """Return the queue that a django-q2 cluster's name means; None is the workflow's own."""
    if tenant_id == SYSTEM_TENANT_ID:
        return SYSTEM_QUEUE
    return None if cluster in (None, Conf.CLUSTER_NAME) else cluster
