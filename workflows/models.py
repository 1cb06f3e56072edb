"""The tables of work. Reads go through `queries`, writes through the verbs; none of them is written by Model.save()."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from tenants.managers import TenantModel, TenantRow
from workflows.states import State


class Definition(TenantModel):
    """One immutable version of a workflow, as a tenant first started it."""

    name = models.CharField(max_length=128)
    version = models.IntegerField()
    checksum = models.CharField(max_length=64)
    graph: models.JSONField = models.JSONField()
    input_schema: models.JSONField = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())


class Task(TenantModel):
    """One durable execution of a workflow; its id is what lineage calls a run."""

    key = models.CharField(max_length=128, null=True)
    workflow = models.CharField(max_length=128)
    version = models.IntegerField()
    queue = models.CharField(max_length=128)
    partition = models.CharField(max_length=128, default="")
    priority = models.SmallIntegerField(default=0)
    state = models.CharField(max_length=9, choices=[(state.value, state.value) for state in State])
    reason = models.CharField(max_length=1000, null=True)
    input: models.JSONField = models.JSONField(null=True)
    output: models.JSONField = models.JSONField(null=True)
    error: models.JSONField = models.JSONField(null=True)
    progress: models.JSONField = models.JSONField(null=True)
    origin: models.JSONField = models.JSONField()
    parent_run_id = models.UUIDField(null=True)
    root_run_id = models.UUIDField(null=True)
    nesting_depth = models.SmallIntegerField(default=0)
    chain_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    claimed_at = models.DateTimeField(null=True)
    terminal_at = models.DateTimeField(null=True)
    attempt = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    max_failures = models.IntegerField(default=3)
    alone = models.BooleanField(default=False)
    token = models.BigIntegerField(default=0)
    worker = models.CharField(max_length=200, null=True)
    lease_expires_at = models.DateTimeField(null=True)
    charged_us = models.BigIntegerField(default=0)
    format = models.SmallIntegerField(db_default=1)

    class Meta(TenantModel.Meta):
        constraints = [
            # Verbs under a claim look for the worker's name alone and rely on this.
            models.CheckConstraint(
                condition=models.Q(state="leased", worker__isnull=False, lease_expires_at__isnull=False)
                | (~models.Q(state="leased") & models.Q(worker__isnull=True, lease_expires_at__isnull=True)),
                name="workflows_task_leased_has_worker",
            ),
        ]


class TaskKey(TenantRow):
    """A tenant's own name for a task, and the hash of what was started under it. Outlives the task."""

    task_id = models.UUIDField(primary_key=True)
    key = models.CharField(max_length=128)
    content_hash = models.CharField(max_length=64)


class Step(TenantModel):
    """The recorded execution of one node inside a task. Immutable."""

    task_id = models.UUIDField()
    name = models.CharField(max_length=128)
    attempt = models.IntegerField()
    state = models.CharField(max_length=9)
    output: models.JSONField = models.JSONField(null=True)
    error: models.JSONField = models.JSONField(null=True)
    token = models.BigIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()


class Partition(TenantModel):
    """A lane inside a tenant's queue: the value of `concurrency_key`, or '' where there is none."""

    queue = models.CharField(max_length=128)
    key = models.CharField(max_length=128, default="")
    virtual_key = models.BigIntegerField(default=0)


class Admission(TenantModel):
    """What one `start()` call asks to admit; its deferred trigger admits or refuses at commit and removes the row."""

    queue = models.CharField(max_length=128)
    queued = models.IntegerField()
    waiting = models.IntegerField()
    next_due_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)


class Cluster(models.Model):
    """A cluster of workers and its last heartbeat. Belongs to no tenant."""

    id = models.UUIDField(primary_key=True)
    host = models.CharField(max_length=200)
    pid = models.IntegerField()
    queues = ArrayField(models.CharField(max_length=128))
    status = models.CharField(max_length=32)
    workers = models.IntegerField()
    busy = models.IntegerField()
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()
