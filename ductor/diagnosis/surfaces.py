"""What keeps the two surfaces apart in the database: the operators' schema, and what the login roles begin with."""

from collections.abc import Callable

from ductor.diagnosis import Finding, judged
from tenants.db.grants import PLAIN_ROLES, declared
from tenants.db.roles import OPERATOR, OWNER
from tenants.store import query

_REMEDY = "Run `manage.py ductor init-db`; if that does not mend it, somebody else changed it: find out who."
_PATHS = dict.fromkeys(PLAIN_ROLES, "public, pg_temp") | {OPERATOR: "operators, public, pg_temp"}
# What a login must not begin with: a tenant that nobody proved, or another role's rights.
_NEVER = ("ductor.", "role", "row_security", "session_replication_role")

Row = tuple[str, str, str]


def accounts_of_operators() -> Finding:
    """The operators' schema and its tables are the operator role's alone, as declared, and hold tables only."""
    usage = query(
        "select coalesce(r.rolname, 'public')::text, lower(g.privilege_type), 'schema operators' from pg_namespace n"
        " cross join aclexplode(n.nspacl) g left join pg_roles r on r.oid = g.grantee"
        " where n.nspname = 'operators' and g.grantee <> n.nspowner"
    )
    live = _rights("c.relacl", "c.relname::text") | _column_rights() | set(usage)
    expected = {(OPERATOR, "usage", "schema operators")}
    for table, by_role in declared().operators_tables.items():
        expected |= {(role, word.strip(), table) for role, words in by_role.items() for word in words.split(",")}
    wrong = [f"{role} may not {right} {thing} of operators" for role, right, thing in sorted(expected - live)]
    wrong += [f"{role} may {right} {thing} of operators" for role, right, thing in sorted(live - expected)]
    strange = query(
        "select relname::text || ' belongs to ' || pg_get_userbyid(relowner) from pg_class"
        " where relnamespace = 'operators'::regnamespace and (pg_get_userbyid(relowner) <> %s)"
        " union all select relname::text || ' is no table' from pg_class"
        " where relnamespace = 'operators'::regnamespace and relkind not in ('r', 'i', 'S', 't')"
        " union all select proname::text || ' is a function in schema operators' from pg_proc"
        " where pronamespace = 'operators'::regnamespace order by 1",
        [OWNER],
    )
    wrong += [text for (text,) in strange]
    return judged("accounts of operators", wrong, f"{len(expected)} rights, as declared", remedy=_REMEDY)


def logins() -> Finding:
    """The login roles are members of nothing and begin with the search path that is theirs."""
    members = query(
        "select m.rolname::text, r.rolname::text from pg_auth_members a join pg_roles m on m.oid = a.member"
        " join pg_roles r on r.oid = a.roleid where m.rolname = any(%s) order by 1, 2",
        [list(PLAIN_ROLES)],
    )
    wrong = [f"{member} is a member of {role}" for member, role in members]
    settings = query(
        "select coalesce(r.rolname, 'every role')::text, split_part(c, '=', 1), substr(c, strpos(c, '=') + 1)"
        " from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole cross join unnest(s.setconfig) c"
        " where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_database where datname = current_database()))"
        " and (s.setrole = 0 or r.rolname = any(%s)) order by 1, 2",
        [list(PLAIN_ROLES)],
    )
    found = {role: value for role, name, value in settings if name == "search_path"}
    wrong += [
        f"{role} begins with search_path {found.get(role)!r}, not {path!r}"
        for role, path in _PATHS.items()
        if found.get(role) != path
    ]
    wrong += [f"{role} begins with {name} = {value}" for role, name, value in settings if name.startswith(_NEVER)]
    return judged("logins", wrong, f"{len(PLAIN_ROLES)} logins, members of nothing", remedy=_REMEDY)


CHECKS: tuple[Callable[[], Finding], ...] = (accounts_of_operators, logins)


def _rights(acl: str, thing: str, rest: str = "") -> set[Row]:
    # Each argument is a literal of this module.
    rows = query(
        f"select coalesce(r.rolname, 'public')::text, lower(g.privilege_type), {thing} from pg_class c {rest}"  # noqa: S608
        f" cross join aclexplode({acl}) g left join pg_roles r on r.oid = g.grantee"
        " where c.relnamespace = 'operators'::regnamespace and g.grantee <> c.relowner"
    )
    return set(rows)


def _column_rights() -> set[Row]:
    join = "join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
    return _rights("a.attacl", "c.relname || '.' || a.attname", join)
