"""The structure of the database against what this code declares."""

import re
from collections.abc import Callable, Iterable

from django.db.migrations.loader import MigrationLoader

from ductor.diagnosis import Finding, judged
from tenants.db.functions import newest_files
from tenants.db.grants import PLAIN_ROLES, declared
from tenants.db.guard import adopted_tables, tenant_tables
from tenants.db.roles import ENGINE, MINIMUM_VERSIONS, OWNER
from tenants.people.routers import LOGIN_APPS
from tenants.store import query

# (role, privilege, object): a column grant's object is `table.column`.
Grant = tuple[str, str, str]

_MIGRATE = "Run `manage.py ductor init-db`."
_POLICIES = {"tenant_rows", "operator_rows", "owner_rows", "engine_rows"}
_PRIVILEGE = re.compile(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*(?:,|$)")


def server_version() -> Finding:
    """The server is one that Ductor supports."""
    [(number, text)] = query("select current_setting('server_version_num')::int, current_setting('server_version')")
    minimum = MINIMUM_VERSIONS.get(number // 10_000)
    wrong = [] if minimum and number >= minimum else [f"PostgreSQL {text} is not supported"]
    return judged("server version", wrong, f"PostgreSQL {text}")


def roles() -> Finding:
    """Each role is there and none of them can step over row security."""
    rows = query(
        "select rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin from pg_roles "
        "where rolname = any(%s)",
        [[OWNER, ENGINE, *PLAIN_ROLES]],
    )
    found = {row[0]: row[1:] for row in rows}
    wrong = [f"{role} is missing" for role in (OWNER, ENGINE, *PLAIN_ROLES) if role not in found]
    for role, (superuser, bypasses, creates_roles, creates_databases, logs_in) in found.items():
        powers = {"is a superuser": superuser, "bypasses row security": bypasses}
        if role in PLAIN_ROLES:
            powers |= {"may create roles": creates_roles, "may create databases": creates_databases}
        if role == ENGINE:
            powers["may log in"] = logs_in
        wrong += [f"{role} {power}" for power, held in powers.items() if held]
    return judged("roles", wrong, f"{len(found)} roles, none above row security", remedy=_MIGRATE)


def row_security() -> Finding:
    """Every tenant table has row security enabled and forced, with exactly the four policies."""
    rows = query(
        "select c.relname, c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner),"
        " coalesce((select array_agg(p.polname::text) from pg_policy p where p.polrelid = c.oid), '{}')"
        " from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname = any(%s)",
        [sorted(tenant_tables() | adopted_tables())],
    )
    found = {row[0]: row[1:] for row in rows}
    wrong = [f"{table} is missing" for table in sorted((tenant_tables() | adopted_tables()) - set(found))]
    for table, (enabled, forced, owner, policies) in sorted(found.items()):
        if not (enabled and forced):
            wrong.append(f"{table} is not under forced row security")
        if set(policies) != _POLICIES:
            wrong.append(f"{table} has the policies {', '.join(sorted(policies)) or 'none'}")
        if owner != OWNER:
            wrong.append(f"{table} belongs to {owner}")
    return judged("row security", wrong, f"enabled and forced on {len(found)} tenant tables", remedy=_MIGRATE)


def grants() -> Finding:
    """Each role holds exactly what the apps' `grants` modules list."""
    expected = _declared_table_grants() | _declared_function_grants()
    live = _live_table_grants() | _live_function_grants()
    wrong = [f"{role} may not {right} {thing}" for role, right, thing in sorted(expected - live)]
    wrong += [f"{role} may {right} {thing}" for role, right, thing in sorted(live - expected)]
    return judged("grants", wrong, f"{len(expected)} grants, as declared", remedy=_MIGRATE)


def functions() -> Finding:
    """The text of every SQL function is that of its newest file."""
    files = newest_files()
    prefixes = {name.partition("_")[0] for name in files}
    rows = query(
        "select proname::text, prosrc from pg_proc where pronamespace = 'public'::regnamespace and prokind = 'f'"
    )
    # Other functions are a handler app's own.
    live = {name: body for name, body in rows if name.partition("_")[0] in prefixes}
    wrong = [f"{name} is missing" for name in sorted(set(files) - set(live))]
    wrong += [f"{name} has no file" for name in sorted(set(live) - set(files))]
    both = sorted(set(files) & set(live))
    wrong += [f"{name} differs from its file" for name in both if live[name] != files[name].body]
    return judged("functions", wrong, f"{len(files)} functions, as in their files", remedy=_MIGRATE)


def migrations() -> Finding:
    """Every migration is applied."""
    expected = set(MigrationLoader(None).disk_migrations)
    accounts = {(app, name) for app, name in expected if app in LOGIN_APPS}
    wrong = [f"{app}.{name} is not applied" for app, name in sorted(expected - _applied("public"))]
    wrong += [f"{app}.{name} is not applied for operators" for app, name in sorted(accounts - _applied("operators"))]
    return judged("migrations", wrong, "all applied", remedy=_MIGRATE)


def _applied(schema: str) -> set[tuple[str, str]]:
    # The schema's name is a literal of our own code.
    return {(app, name) for app, name in query(f"select app, name from {schema}.django_migrations")}  # noqa: S608


CHECKS: tuple[Callable[[], Finding], ...] = (server_version, roles, migrations, row_security, grants, functions)


def _declared_table_grants() -> set[Grant]:
    found: set[Grant] = set()
    for table, by_role in declared().tables.items():
        for role, privileges in by_role.items():
            for privilege, columns in _PRIVILEGE.findall(privileges):
                things = [f"{table}.{column.strip()}" for column in columns.split(",")] if columns else [table]
                found |= {(role, privilege.lower(), thing) for thing in things}
    return found


def _declared_function_grants() -> set[Grant]:
    functions = declared().functions
    live = [name for (name,) in query("select proname::text from pg_proc where pronamespace = 'public'::regnamespace")]
    return {(role, "execute", name) for name in live for role in {*functions.get(name, ()), ENGINE}}


def _live_table_grants() -> set[Grant]:
    rows = query(
        "select coalesce(r.rolname, 'public'), lower(g.privilege_type), c.relname::text"
        " from pg_class c cross join aclexplode(c.relacl) g left join pg_roles r on r.oid = g.grantee"
        " where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and g.grantee <> c.relowner"
        " union all"
        " select coalesce(r.rolname, 'public'), lower(g.privilege_type), c.relname || '.' || a.attname"
        " from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
        " cross join aclexplode(a.attacl) g left join pg_roles r on r.oid = g.grantee"
        " where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and g.grantee <> c.relowner"
    )
    return _grants(rows)


def _live_function_grants() -> set[Grant]:
    # An engine function's owner is ductor_engine itself, whose right is declared like any other's.
    rows = query(
        "select coalesce(r.rolname, 'public'), lower(g.privilege_type), p.proname::text"
        " from pg_proc p cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) g"
        " left join pg_roles r on r.oid = g.grantee"
        " where p.pronamespace = 'public'::regnamespace and (g.grantee <> p.proowner or r.rolname = %s)",
        [ENGINE],
    )
    return _grants(rows)


def _grants(rows: Iterable[tuple[str, str, str]]) -> set[Grant]:
    return {(role, privilege, thing) for role, privilege, thing in rows}
