from django.db import migrations

from tenants.db.operations import Immutable, TenantForeignKey, TenantTable

TASKS = "fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02"


class Migration(migrations.Migration):
    dependencies = [("workflows", "0001_initial"), ("tenants", "0003_functions")]

    operations = [
        TenantTable("Definition", unique=[("name", "version")]),
        TenantTable(
            "Task",
            indexes=[
                ("ready", "tenant_id, queue, partition, priority desc, due_at, id", "state = 'queued'"),
                ("waiting", "tenant_id, queue, due_at", "state = 'waiting'"),
                ("leases", "lease_expires_at", "state = 'leased'"),
                ("unhappy", "tenant_id, state, id", "state in ('failed', 'cancelled')"),
                ("named", "tenant_id, workflow, id", ""),
            ],
            storage=TASKS,
            linked=False,
        ),
        TenantTable("TaskKey", key=("key",), linked=False),
        TenantTable("Step", key=("task_id", "name", "attempt"), linked=False),
        TenantForeignKey("Step", "task_id", "workflows_task"),
        Immutable("Step"),
        TenantTable("Partition", key=("queue", "key")),
        TenantTable("Admission", linked=False),
    ]
