"""The database roles, and the refusal to start with one that row security does not bind (DESIGN D3)."""

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from tenants.errors import RoleUnsafe

OWNER = "ductor_owner"
ENGINE = "ductor_engine"
WEB = "ductor_web"
WORKER = "ductor_worker"
OPERATOR = "ductor_operator"

# Names of processes, as in DUCTOR_ROLE. The operator's policy is: the attached tenant, or all where none is; the owner
# migrates.
UNSCOPED_ROLES = frozenset({"operator", "owner"})

MINIMUM_VERSIONS = {15: 150014, 16: 160010, 17: 170006, 18: 180000}


def refuse_unsafe_role() -> None:
    """Raise unless the process's database role is bound by row security and the server is a safe version.

    Raises:
        RoleUnsafe: the role is superuser, bypasses row security, may create roles, owns tables, or belongs to a role
            that does; or the server version lacks row security fixes.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            select current_user, current_setting('server_version_num')::int,
              (select coalesce(string_agg(r.rolname || case when r.rolsuper then ' is a superuser'
                  when r.rolbypassrls then ' bypasses row security' when r.rolcreaterole then ' may create roles'
                  else ' owns tables' end, ', '), '')
               from pg_roles r where pg_has_role(current_user, r.oid, 'MEMBER') and (r.rolsuper or r.rolbypassrls
                 or r.rolcreaterole or exists (select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where c.relowner = r.oid and c.relkind in ('r', 'p') and n.nspname = 'public')))
            """
        )
        role, version, why = cursor.fetchone()
    if why:
        raise RoleUnsafe(
            f"Ductor does not start as database role {role!r}: {why}. Row security would not bind it. Use the role "
            "made by `manage.py ductor init-db` for this process (ductor_web, ductor_worker or ductor_operator).",
            role=role,
        )
    minimum = MINIMUM_VERSIONS.get(version // 10000)
    if minimum is None or version < minimum:
        raise RoleUnsafe(
            f"PostgreSQL {version} is not supported: Ductor needs 15.14, 16.10, 17.6, 18 or newer of these.",
            version=version,
        )


def sees_all(connection: BaseDatabaseWrapper) -> bool:
    """Say whether the connection's role may query without a tenant."""
    return connection.settings_dict.get("ROLE") in UNSCOPED_ROLES
