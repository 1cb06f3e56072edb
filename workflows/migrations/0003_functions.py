from django.db import migrations

from tenants.db.operations import SqlFunction

FUNCTIONS = [
    "check_bounds",
    "refuse_over_limit",
    "check_admission",
    "enqueue_tasks",
    "start_task",
    "admit",
    "check_lineage",
    "count_moves",
    "returned",
    "promote_due",
    "recover_tasks",
    "lease_next",
    "claim_tasks",
    "insert_steps",
    "state_after",
    "record_steps",
    "heartbeat_tasks",
    "release_tasks",
    "finish_tasks",
    "cancel_task",
    "next_due",
    "ready_tenants",
    "mark_fault",
    "measure_classes",
    "prepare_restore",
    "recount",
]


class Migration(migrations.Migration):
    dependencies = [("workflows", "0002_row_security")]

    operations = [
        *[SqlFunction(name, 1) for name in FUNCTIONS],
        migrations.RunSQL(
            "create constraint trigger workflows_admission_admit after insert on workflows_admission"
            " deferrable initially deferred for each row execute function workflows_admit()",
            "drop trigger workflows_admission_admit on workflows_admission",
        ),
        migrations.RunSQL(
            "create trigger workflows_task_lineage before insert on workflows_task for each row"
            " when (new.parent_run_id is not null or new.root_run_id is distinct from new.id or new.nesting_depth <> 0)"
            " execute function workflows_check_lineage()",
            "drop trigger workflows_task_lineage on workflows_task",
        ),
    ]
