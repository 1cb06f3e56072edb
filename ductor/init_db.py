"""`init-db`: roles, their rights, the database and its tables. It can be repeated, and repeats change nothing.

The login may be a superuser or a plain role with CREATEROLE and CREATEDB; where all roles exist, ductor_owner will do.
Tables, policies, grants and queues come from the migrations, which run as ductor_owner in a process of their own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from ductor import database_roles, databases
from ductor.database_roles import Connection, InitFailed, check_version
from ductor.embedded import SUPERUSER

__all__ = ["InitFailed", "embedded_login", "initialise", "migrate", "prepare"]

_LOCK = "ductor.init-db"  # two init-db on one database wait for each other
_APPLYING = re.compile(r"\s*Applying (\S+?)\.\.\.")

Progress = Callable[[str], None]


def initialise(*, progress: Progress = lambda _: None, new_passwords: bool = False, tables: bool = True) -> None:
    """Prepare the database that the environment names, or the embedded one.

    Args:
        progress: called with one line for each act.
        new_passwords: give login roles new passwords where this machine does not know theirs; other machines that
            know the old ones lose their access.
        tables: make the tables, too; without them the database is ready for a backup to be restored.

    Raises:
        InitFailed: with the reason in one line.
        DatabaseUnclear: the environment names no usable database.
        ServerFailed: the embedded server does not start.
    """
    if not databases.uses_embedded():
        prepare(_named_login(), trusted=False, progress=progress, new_passwords=new_passwords, tables=tables)
        if tables:
            migrate(progress=progress)
        return
    if not tables:
        raise InitFailed("the embedded server gets its tables at once: name a server in DATABASE_URL")
    server = databases.embedded_server()
    server.acquire(progress)
    try:
        prepare(embedded_login(), trusted=True, progress=progress)
        # Before the migrations: they are a command like any other, which would else call this again.
        server.prepared.touch()
        try:
            migrate(progress=progress)
        except BaseException:
            server.prepared.unlink(missing_ok=True)
            raise
    finally:
        server.release()


def embedded_login() -> dict[str, Any]:
    """Return the superuser's login on the embedded server."""
    return {**databases.connection_settings("owner"), "USER": SUPERUSER}


def prepare(
    login: dict[str, Any],
    *,
    trusted: bool,
    progress: Progress = lambda _: None,
    new_passwords: bool = False,
    tables: bool = True,
) -> None:
    """Make the roles and the database of `login` and give each role its rights; no tables.

    Args:
        login: a DATABASES entry whose user may create roles and databases.
        trusted: the server asks for no passwords, so none are made.
        tables: migrations follow; else a backup does, which brings the schema of operators itself.

    Raises:
        InitFailed: with the reason in one line.
    """
    try:
        with _connected(login, progress) as connection:
            check_version(connection.info.server_version)
            with connection.transaction():
                connection.execute("select pg_advisory_xact_lock(hashtextextended(%s, 0))", [_LOCK])
                _prepare_locked(connection, login, trusted, progress, new_passwords, tables)
    except psycopg.Error as error:
        raise InitFailed(_explain(error, login)) from error


def _prepare_locked(
    connection: Connection, login: dict[str, Any], trusted: bool, progress: Progress, new_passwords: bool, tables: bool
) -> None:
    progress("making the database roles")
    existing = database_roles.existing_roles(connection)
    if connection.info.user != database_roles.OWNER:
        passwords = {} if trusted else _passwords(login, existing, new_passwords)
        database_roles.make_roles(connection)
        database_roles.set_passwords(connection, passwords)
    elif missing := sorted(set(database_roles.ALL) - existing):
        raise InitFailed(
            f"role {missing[0]} is missing and ductor_owner may not make it: name a superuser, or a role with "
            "CREATEROLE and CREATEDB, in DATABASE_URL once"
        )
    database_roles.own_database(connection, operators=tables)


def migrate(*, progress: Progress = lambda _: None) -> None:
    """Run the migrations as ductor_owner, one progress line for each.

    Raises:
        InitFailed: with the last line that the migrations printed.
    """
    progress("migrating")
    environment = {**os.environ, "DUCTOR_ROLE": "owner", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, str(Path(__file__).resolve().parent.parent / "manage.py"), "migrate", "--no-input"]
    lines: list[str] = []
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip())
            if match := _APPLYING.match(line):
                progress(f"migrating {match[1]}")
    if process.returncode != 0:
        reasons = [line.strip(" ─╰╯│") for line in lines if line.strip(" ─╰╯│")]
        raise InitFailed(f"the migrations failed: {reasons[-1] if reasons else 'no reason given'}")


def _named_login() -> dict[str, Any]:
    url = os.environ.get("DATABASE_URL") or os.environ.get("DUCTOR_DATABASE_URL_OWNER")
    if not url:
        raise databases.DatabaseUnclear("set DATABASE_URL to a login that may create roles and databases")
    return databases.login_settings(url)


def _passwords(login: dict[str, Any], existing: set[str], renew: bool) -> dict[str, str]:
    """Return the roles' passwords from the environment, as kept on this machine, or new; all are kept from now on."""
    known = databases.stored_passwords(login)
    for role in database_roles.LOGINS:
        if named := os.environ.get(f"DUCTOR_PASSWORD_{role.removeprefix('ductor_').upper()}"):
            known = {**known, role: named}
    passwords = database_roles.choose_passwords(known, existing, renew=renew)
    # Kept before they are set: what a killed init-db leaves behind is finished by the next.
    databases.store_passwords(login, passwords)
    return passwords


@contextmanager
def _connected(login: dict[str, Any], progress: Progress) -> Iterator[Connection]:
    parameters = databases.psycopg_parameters(login)
    try:
        connection = psycopg.connect(**parameters, autocommit=True)
    except psycopg.OperationalError:
        if not _create_database(parameters, progress):
            raise
        connection = psycopg.connect(**parameters, autocommit=True)
    with connection:
        yield connection


def _create_database(parameters: dict[str, Any], progress: Progress) -> bool:
    """Create the named database if the server answers and lacks it; return whether it is there now."""
    name = parameters["dbname"]
    try:
        connection = psycopg.connect(**{**parameters, "dbname": "postgres"}, autocommit=True)
    except psycopg.OperationalError:
        return False
    with connection:
        check_version(connection.info.server_version)
        if connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            return False
        progress(f"creating database {name}")
        create = sql.SQL("create database {} template template0 encoding 'UTF8'").format(sql.Identifier(name))
        try:
            connection.execute(create)
        except psycopg.errors.DuplicateDatabase:
            return True
    return True


def _explain(error: psycopg.Error, login: dict[str, Any]) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else type(error).__name__
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return (
            f"the login {login.get('USER')} may not do this ({reason}): use a superuser, or a role with CREATEROLE and "
            "CREATEDB that owns the database"
        )
    if isinstance(error, psycopg.OperationalError):
        return f"no connection to {databases.server_key(login)}: {reason}"
    return f"the database refused: {reason}"
