"""init-db on a server of its own: what the roles may do, by which login it can be run, and what it refuses."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ductor import database_roles, databases, init_db
from ductor.database_roles import ALL, LOGINS, InitFailed, check_version
from ductor.embedded import EmbeddedServer

ROLES = """
select rolname, rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication
from pg_roles where rolname like 'ductor\\_%' order by rolname
"""
PUBLIC_RIGHTS = """
select 'database', privilege_type from pg_database, aclexplode(datacl)
where datname = current_database() and grantee = 0
union all
select 'schema', privilege_type from pg_namespace, aclexplode(nspacl)
where nspname = 'public' and grantee = 0
"""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    home = Path(tempfile.mkdtemp(prefix="ductor-boot-"))
    server = EmbeddedServer(home, {"fsync": "off"})
    server.acquire()
    yield server
    server.release()
    server.destroy()
    shutil.rmtree(home)


@pytest.fixture(autouse=True)
def fresh_roles(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No database, no role of Ductor's, no URL, no kept password."""
    monkeypatch.setenv("DUCTOR_HOME", str(tmp_path / "home"))
    for role in databases.ROLES:
        monkeypatch.delenv(f"DUCTOR_DATABASE_URL_{role.upper()}", raising=False)
    with connect(server, "postgres") as admin:
        admin.execute("drop database if exists shop")
        for role in (*ALL, "boss", "clerk"):
            if admin.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone():
                admin.execute(f"drop owned by {role} cascade")
                admin.execute(f"drop role {role}")


def connect(server: EmbeddedServer, database: str, user: str = "postgres") -> "psycopg.Connection[Any]":
    return psycopg.connect(host=str(server.socket_dir), user=user, dbname=database, autocommit=True)


def login(server: EmbeddedServer, user: str = "postgres") -> dict[str, Any]:
    return databases.login_settings(f"postgresql://{user}:x@/shop?host={server.socket_dir}")


def snapshot(server: EmbeddedServer) -> list[Any]:
    with connect(server, "shop") as admin:
        settings = "select setrole::regrole::text, setconfig from pg_db_role_setting order by 1"
        members = "select roleid::regrole::text, member::regrole::text from pg_auth_members order by 1, 2"
        access = "select datdba::regrole::text, datacl::text from pg_database where datname = 'shop'"
        schema = (
            "select nspowner::regrole::text, nspacl::text from pg_namespace"
            " where nspname in ('public', 'operators') order by nspname desc"
        )
        return [admin.execute(query).fetchall() for query in (ROLES, settings, members, access, schema)]


@pytest.mark.parametrize("attributes", ["superuser", "createrole createdb"])
def test_any_able_login_makes_roles_that_row_security_binds(server: EmbeddedServer, attributes: str) -> None:
    with connect(server, "postgres") as admin:
        admin.execute(f"create role boss login {attributes}")
    said: list[str] = []

    init_db.prepare(login(server, "boss"), trusted=True, progress=said.append)

    roles, settings, members, database, schema = snapshot(server)
    assert [row[0] for row in roles] == sorted(ALL)
    assert {row[0] for row in roles if row[1]} == set(LOGINS)
    assert all(row[2:] == (False,) * 5 for row in roles)
    assert dict(settings)["ductor_web"] == [
        "search_path=public, pg_temp",
        "statement_timeout=30s",
        "lock_timeout=5s",
        "idle_in_transaction_session_timeout=30s",
    ]
    assert "statement_timeout=60s" in dict(settings)["ductor_worker"]
    assert dict(settings)["ductor_operator"] == [
        "search_path=operators, public, pg_temp",
        *dict(settings)["ductor_web"][1:],
    ]
    assert [row for row in members if row[0] == "ductor_engine" and row[1] != "boss"] == [
        ("ductor_engine", "ductor_owner")
    ]
    assert database[0][0] == "ductor_owner"
    assert schema[0][0] == "pg_database_owner"
    assert schema[1] == ("ductor_owner", "{ductor_owner=UC/ductor_owner,ductor_operator=U/ductor_owner}")
    assert said == ["creating database shop", "making the database roles"]


@pytest.mark.parametrize("attributes", ["superuser", "createrole createdb"])
def test_a_repeat_changes_nothing(server: EmbeddedServer, attributes: str) -> None:
    with connect(server, "postgres") as admin:
        admin.execute(f"create role boss login {attributes}")
    init_db.prepare(login(server, "boss"), trusted=False)
    before = snapshot(server), (databases.home() / "roles.json").read_text()

    init_db.prepare(login(server, "boss"), trusted=False)
    init_db.prepare(login(server, "ductor_owner"), trusted=False)

    assert (snapshot(server), (databases.home() / "roles.json").read_text()) == before


def test_the_public_has_nothing(server: EmbeddedServer) -> None:
    with connect(server, "postgres") as admin:
        admin.execute("create role clerk login")
    init_db.prepare(login(server), trusted=True)

    with connect(server, "shop") as admin:
        assert admin.execute(PUBLIC_RIGHTS).fetchall() == []
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        connect(server, "shop", "clerk")


@pytest.mark.parametrize("role", ["web", "worker", "operator"])
@pytest.mark.parametrize(
    "statement", ["create table here ()", "create temporary table here ()", "create schema here", "create role here"]
)
def test_surfaces_and_workers_create_nothing(server: EmbeddedServer, role: str, statement: str) -> None:
    init_db.prepare(login(server), trusted=True)

    with connect(server, "shop", f"ductor_{role}") as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_the_owner_hands_functions_to_the_engine_without_superuser(server: EmbeddedServer) -> None:
    init_db.prepare(login(server), trusted=True)

    with connect(server, "shop", "ductor_owner") as owner:
        owner.execute("create table mine ()")
        owner.execute("create function act() returns int language sql as 'select 1'")
        owner.execute("alter function act() owner to ductor_engine")
        owner.execute("revoke all on function act() from public")


def test_a_role_that_got_too_much_is_cut_back(server: EmbeddedServer) -> None:
    init_db.prepare(login(server), trusted=True)
    with connect(server, "postgres") as admin:
        admin.execute("alter role ductor_web superuser bypassrls createrole")
        admin.execute("alter role ductor_engine login")

    init_db.prepare(login(server), trusted=True)

    roles = snapshot(server)[0]
    assert all(row[2:] == (False,) * 5 for row in roles)
    assert {row[0] for row in roles if row[1]} == set(LOGINS)


def test_passwords_are_kept_privately_and_never_sent_in_the_clear(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUCTOR_PASSWORD_WEB", "given by hand")
    init_db.prepare(login(server), trusted=False)

    file = databases.home() / "roles.json"
    (kept,) = json.loads(file.read_text()).values()
    assert file.stat().st_mode & 0o777 == 0o600
    assert set(kept) == set(LOGINS)
    assert kept["ductor_web"] == "given by hand"
    assert len(set(kept.values())) == len(LOGINS)
    with connect(server, "postgres") as admin:
        stored = admin.execute("select rolpassword from pg_authid where rolname = any(%s)", [list(LOGINS)]).fetchall()
    assert all(verifier.startswith("SCRAM-SHA-256$") for (verifier,) in stored)


def test_an_unknown_password_is_not_replaced_unasked(server: EmbeddedServer) -> None:
    init_db.prepare(login(server), trusted=False)
    (databases.home() / "roles.json").unlink()
    with connect(server, "postgres") as admin:
        before = admin.execute("select rolname, rolpassword from pg_authid order by 1").fetchall()
        with pytest.raises(InitFailed, match="--new-passwords"):
            init_db.prepare(login(server), trusted=False)
        assert admin.execute("select rolname, rolpassword from pg_authid order by 1").fetchall() == before

    init_db.prepare(login(server), trusted=False, new_passwords=True)
    assert (databases.home() / "roles.json").exists()


def test_a_login_that_may_not_is_one_line(server: EmbeddedServer) -> None:
    with connect(server, "postgres") as admin:
        admin.execute("create role clerk login")
    refused = ["clerk", "ductor_owner"]

    with pytest.raises(InitFailed, match="may not do this") as no_right:
        init_db.prepare(login(server, refused[0]), trusted=True)
    with pytest.raises(InitFailed, match="no connection") as no_role:
        init_db.prepare(login(server, refused[1]), trusted=True)

    for refusal in (no_right, no_role):
        assert "\n" not in str(refusal.value)
    with connect(server, "postgres") as admin:
        assert admin.execute("select 1 from pg_database where datname = 'shop'").fetchone() is None
        assert database_roles.existing_roles(admin) == set()


def test_no_server_is_one_line() -> None:
    nowhere = databases.login_settings("postgresql://app:geheim@127.0.0.1:9/shop")

    with pytest.raises(InitFailed, match=r"no connection to 127\.0\.0\.1:9") as refusal:
        init_db.prepare(nowhere, trusted=False)
    assert "geheim" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("number", [150014, 160010, 170006, 180000, 180004, 150099])
def test_r22_r23_r24_patched_servers_are_taken(number: int) -> None:
    check_version(number)


@pytest.mark.parametrize("number", [140020, 150013, 160009, 170005, 190000, 90600])
def test_r22_r23_r24_servers_with_row_security_holes_are_refused(number: int) -> None:
    with pytest.raises(InitFailed, match="is not supported"):
        check_version(number)
