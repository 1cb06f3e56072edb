"""The database roles and their rights, as `init-db` makes them and repeats them."""

import secrets
from typing import Any

import psycopg
from psycopg import sql

OWNER, ENGINE = "ductor_owner", "ductor_engine"
SURFACES = ("ductor_web", "ductor_worker", "ductor_operator")
LOGINS = (OWNER, *SURFACES)
ALL = (*LOGINS, ENGINE)
# Where the accounts of operators stand: a schema that no other role may use.
OPERATORS = "operators"

TIMEOUTS = {
    "ductor_web": {"statement_timeout": "30s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s"},
    "ductor_operator": {"statement_timeout": "30s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s"},
    "ductor_worker": {"statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"},
}

# The first minor releases with the fixes for row security of 2023 to 2025.
MINIMUM_VERSIONS = {15: (15, 14), 16: (16, 10), 17: (17, 6), 18: (18, 0)}

Connection = psycopg.Connection[Any]


class InitFailed(Exception):
    """The database can't be prepared; the message is one line that says why and what to do."""


def check_version(number: int) -> None:
    """Refuse servers that are too old, too new to be known, or lack security fixes that isolation rests on.

    Args:
        number: PostgreSQL's server_version_num, for example 170006.

    Raises:
        InitFailed: not a supported version.
    """
    version = (number // 10000, number % 10000)
    if version[0] not in MINIMUM_VERSIONS or version < MINIMUM_VERSIONS[version[0]]:
        raise InitFailed(
            f"PostgreSQL {version[0]}.{version[1]} is not supported: Ductor needs 15.14, 16.10, 17.6, 18.0 or a newer "
            "minor release of these"
        )


def existing_roles(connection: Connection) -> set[str]:
    """Return which of Ductor's roles the server has."""
    rows = connection.execute("select rolname from pg_roles where rolname = any(%s)", [list(ALL)]).fetchall()
    return {name for (name,) in rows}


def is_superuser(connection: Connection) -> bool:
    """Say whether the connection's login is a superuser."""
    return bool(_one(connection, "select rolsuper from pg_roles where rolname = current_user"))


def make_roles(connection: Connection) -> None:
    """Make the roles that are missing, take from the others what they must not have, and set their timeouts."""
    rows = connection.execute(
        "select rolname, rolsuper or rolbypassrls or rolcreaterole or rolreplication, rolcanlogin from pg_roles"
    ).fetchall()
    found = {name: (unsafe, login) for name, unsafe, login in rows}
    for role in ALL:
        can_login = "nologin" if role == ENGINE else "login"
        if role not in found:
            connection.execute(f"create role {role} {can_login} nosuperuser nobypassrls nocreaterole nocreatedb")
        elif found[role] != (False, role != ENGINE):
            connection.execute(f"alter role {role} {can_login} nosuperuser nobypassrls nocreaterole noreplication")
    _make_member(connection, ENGINE, OWNER)
    if not is_superuser(connection):
        # The login hands the database to the owner and then acts as the owner.
        _make_member(connection, OWNER, connection.info.user)
    for role in LOGINS:
        path = f"{OPERATORS}, public" if role == "ductor_operator" else "public"
        connection.execute(f"alter role {role} set search_path = {path}, pg_temp")
        for name, value in TIMEOUTS.get(role, {}).items():
            connection.execute(f"alter role {role} set {name} = '{value}'")


def _make_member(connection: Connection, role: str, member: str) -> None:
    known = "select 1 from pg_auth_members where roleid = %s::regrole and member = quote_ident(%s)::regrole"
    if connection.info.server_version >= 160000:
        known += " and inherit_option and set_option"
    if connection.execute(known, [role, member]).fetchone() is None:
        connection.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), sql.Identifier(member)))


def choose_passwords(known: dict[str, str], existing: set[str], *, renew: bool) -> dict[str, str]:
    """Return a password for every login role: the known one, or a new one.

    Args:
        known: from the environment or kept on this machine.
        existing: the roles that the server has already.
        renew: give existing roles with an unknown password a new one.

    Raises:
        InitFailed: an existing role's password is unknown; a new one would shut other machines out.
    """
    for role in LOGINS:
        if role in existing and role not in known and not renew:
            raise InitFailed(
                f"role {role} has a password that this machine does not know: set DUCTOR_PASSWORD_"
                f"{role.removeprefix('ductor_').upper()}, copy roles.json from the machine that ran init-db, or give "
                "new ones with --new-passwords"
            )
    return {role: known.get(role) or secrets.token_urlsafe(32) for role in LOGINS}


def set_passwords(connection: Connection, passwords: dict[str, str]) -> None:
    """Set the roles' passwords, hashed here, so that none stands in the server's log."""
    for role, password in passwords.items():
        verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        connection.execute(sql.SQL("alter role {} password {}").format(sql.Identifier(role), sql.Literal(verifier)))


def own_database(connection: Connection, *, operators: bool = True) -> None:
    """Give the connection's database to ductor_owner and close it to everybody but Ductor's roles."""
    name = sql.Identifier(connection.info.dbname)
    owner = _one(connection, "select datdba::regrole::text from pg_database where datname = current_database()")
    if owner != OWNER:
        connection.execute(sql.SQL("alter database {} owner to {}").format(name, sql.Identifier(OWNER)))
    schema_owner = _one(connection, "select nspowner::regrole::text from pg_namespace where nspname = 'public'")
    if schema_owner not in ("pg_database_owner", OWNER):
        # Databases that began before PostgreSQL 15 keep their old owner of the schema.
        connection.execute("alter schema public owner to pg_database_owner")
    connection.execute(f"set role {OWNER}")
    connection.execute(sql.SQL("revoke all on database {} from public").format(name))
    connection.execute(sql.SQL("grant connect on database {} to {}").format(name, sql.SQL(", ".join(ALL))))
    own_schema(connection, operators=operators)
    connection.execute("reset role")


def own_schema(connection: Connection, *, operators: bool = True) -> None:
    """Close schema public to PUBLIC; Ductor's roles may use it, and nobody below the owner creates in it.

    The engine's right to create is what PostgreSQL asks of a role that becomes a function's owner; it can't log in.
    Without `operators` that schema is left to the backup that brings it.
    """
    connection.execute("revoke all on schema public from public")
    connection.execute(f"grant usage on schema public to {', '.join(ALL)}")
    connection.execute(f"grant create on schema public to {ENGINE}, {OWNER}")
    if not operators:
        return
    connection.execute(f"create schema if not exists {OPERATORS} authorization {OWNER}")
    connection.execute(f"revoke all on schema {OPERATORS} from public")
    connection.execute(f"grant usage on schema {OPERATORS} to ductor_operator")


def _one(connection: Connection, query: str) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None
