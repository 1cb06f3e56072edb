from django.db import migrations

from tenants.db.operations import SqlFunction

# The system tenant is one of the first rows; internal work is its tasks (DESIGN D11).
SYSTEM = """
insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)
values ('00000000-0000-7000-8000-000000000000', 'system', 'system', 'System', 'active', 'system', ductor_now());
insert into tenants_policy (tenant_id, max_outstanding, max_leases, weight, guaranteed_leases, version, updated_at)
values ('00000000-0000-7000-8000-000000000000', 1000000, 1000, 1, 0, 1, ductor_now());
insert into tenants_load (tenant_id, outstanding, leased, max_outstanding, max_leases, weight, guaranteed_leases, frozen)
values ('00000000-0000-7000-8000-000000000000', 0, 0, 1000000, 1000, 1, 0, 0);
"""


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_row_security")]

    operations = [
        SqlFunction("now", 1),
        SqlFunction("raise", 1),
        SqlFunction("require_scope", 1),
        SqlFunction("provision", 1),
        SqlFunction("turn_blocked", 1),
        SqlFunction("queue_clock", 1),
        SqlFunction("wake", 1),
        SqlFunction("move_work", 1),
        SqlFunction("hold_limits", 1),
        SqlFunction("set_policy", 1),
        SqlFunction("set_own_policy", 1),
        SqlFunction("read_usage", 1),
        SqlFunction("set_freeze", 1),
        SqlFunction("hold_still", 1),
        SqlFunction("recount", 1),
        SqlFunction("find_api_key", 1),
        SqlFunction("check_domain", 1),
        SqlFunction("find_membership", 1),
        SqlFunction("list_memberships", 1),
        SqlFunction("find_invitation", 1),
        migrations.RunSQL(SYSTEM, migrations.RunSQL.noop),
    ]
