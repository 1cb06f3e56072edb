from django.db import migrations

from tenants.db.operations import AdoptedTable, SqlFunction


class Migration(migrations.Migration):
    dependencies = [
        ("django_q", "0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more"),
        ("tenants", "0003_functions"),
    ]

    operations = [
        AdoptedTable("django_q_task", indexes=[("newest", "tenant_id, stopped desc", "success")]),
        AdoptedTable(
            "django_q_schedule",
            # django-q2 looks before it inserts; two processes that do so at once would both find the name free.
            unique=[("name",)],
            indexes=[("due", "next_run, tenant_id, id", "repeats <> 0")],
            platform=True,
        ),
        AdoptedTable("django_q_ormq"),
        SqlFunction("due_schedules", 1),
        SqlFunction("next_schedule", 1),
    ]
