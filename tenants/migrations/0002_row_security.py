from django.db import migrations

from tenants.db.operations import Immutable, SqlFunction, TenantTable

# One row a tenant, or one a (tenant, queue), rewritten with every batch: room for HOT updates and early vacuum.
HOT = "fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000"


def cache_table(surface: str) -> migrations.RunSQL:
    """A table of Django's cache for one kind of process: what stands there is unpickled by its reader alone."""
    table = f"tenants_cache_{surface}"
    return migrations.RunSQL(
        f"create table {table} (cache_key varchar(255) primary key, value text not null, expires timestamptz not null);"
        f" create index {table}_expires on {table} (expires)",
        f"drop table {table}",
    )


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_members")]

    operations = [
        SqlFunction("refuse_change", 1),
        SqlFunction("keep_key", 1),
        TenantTable("Policy", key=()),
        TenantTable("Load", key=(), storage=HOT),
        TenantTable(
            "Turn",
            key=("queue",),
            indexes=[
                ("order", "queue, below_floor desc, key, next_due_at, tenant_id", "blocked = 0"),
                ("wake", "queue, wake_at", "wake_at is not null"),
            ],
            storage=HOT,
        ),
        TenantTable("ApiKey", indexes=[("prefix", "prefix", "")]),
        TenantTable("Member", unique=[("person_id",)], indexes=[("person", "person_id", "")]),
        TenantTable("Invitation", indexes=[("token", "hashed_token", "")]),
        migrations.RunSQL(
            "create trigger kept_rows before update on tenants_apikey for each row execute function tenants_keep_key()",
            "drop trigger kept_rows on tenants_apikey",
        ),
        TenantTable(
            "Act",
            linked=False,
            indexes=[
                ("time", "tenant_id, at, id", ""),
                ("act", "tenant_id, act, at, id", ""),
                ("target", "tenant_id, target_kind, target_id, at, id", ""),
            ],
        ),
        Immutable("Act"),
        *[cache_table(surface) for surface in ("web", "worker", "operator")],
        migrations.RunSQL(
            "create type tenants_move as (tenant_id uuid, queue text, queued int, waiting int, leased int,"
            " admitted int, completed int, failed int, cancelled int, key bigint, expected_us bigint,"
            " next_due_at timestamptz, wake_at timestamptz)",
            "drop type tenants_move",
        ),
    ]
