"""`doctor` sees what would let one surface into the other, also what only the roles' own settings hold."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from ductor.databases import connection_settings, psycopg_parameters
from ductor.diagnosis.surfaces import accounts_of_operators, logins
from tenants.db.grants import declared
from tests.builders import rows
from tests.database import as_role
from tests.surfaces import ROOT


@contextmanager
def spoilt(by: str, spoil: str, mend: str) -> Iterator[None]:
    with psycopg.connect(**psycopg_parameters(connection_settings(by)), autocommit=True) as connection:
        connection.execute(spoil)
        try:
            yield
        finally:
            connection.execute(mend)


def test_a_sound_platform_is_clean() -> None:
    with as_role("operator"):
        for check in (accounts_of_operators, logins):
            found = check()
            assert (found.verdict, found.check) == ("ok", check.__name__.replace("_", " ")), found


@pytest.mark.parametrize(
    ("check", "by", "spoil", "mend", "named"),
    [
        (
            accounts_of_operators,
            "owner",
            "grant usage on schema operators to ductor_web",
            "revoke usage on schema operators from ductor_web",
            "ductor_web may usage schema operators",
        ),
        (
            accounts_of_operators,
            "owner",
            "grant select on operators.people_person to public",
            "revoke select on operators.people_person from public",
            "public may select people_person",
        ),
        (
            accounts_of_operators,
            "owner",
            "grant update (password) on operators.people_person to ductor_engine",
            "revoke update (password) on operators.people_person from ductor_engine",
            "ductor_engine may update people_person.password",
        ),
        (
            accounts_of_operators,
            "owner",
            "revoke select on operators.people_person from ductor_operator",
            "grant select on operators.people_person to ductor_operator",
            "ductor_operator may not select people_person",
        ),
        (
            accounts_of_operators,
            "owner",
            "create view operators.window_out as select * from operators.people_person",
            "drop view operators.window_out",
            "window_out is no table",
        ),
        (
            accounts_of_operators,
            "owner",
            "create function operators.mine() returns int language sql as 'select 1'",
            "drop function operators.mine()",
            "mine is a function",
        ),
        (
            logins,
            "web",
            "alter role ductor_web set search_path = operators, public",
            "alter role ductor_web set search_path = public, pg_temp",
            "ductor_web begins with search_path 'operators, public'",
        ),
        (
            logins,
            "web",
            "alter role ductor_web set row_security = off",
            "alter role ductor_web reset row_security",
            "ductor_web begins with row_security = off",
        ),
    ],
)
def test_what_opens_a_way_is_found(check: Any, by: str, spoil: str, mend: str, named: str) -> None:
    with spoilt(by, spoil, mend), as_role("operator"):
        found = check()
    assert found.verdict == "failure"
    assert named in found.detail
    assert "init-db" in found.detail
    with as_role("operator"):
        assert check().verdict == "ok"


def test_grants_in_the_operators_schema_are_exactly_the_declared_ones() -> None:
    live: dict[str, dict[str, set[str]]] = {}
    for table, role, privilege in rows(
        "select table_name, grantee, lower(privilege_type) from information_schema.role_table_grants"
        " where table_schema = 'operators' and grantee <> 'ductor_owner'"
    ):
        live.setdefault(table, {}).setdefault(role, set()).add(privilege)
    expected = {
        table: {role: {word.strip() for word in words.split(",")} for role, words in by_role.items()}
        for table, by_role in declared().operators_tables.items()
    }
    assert live == expected
    assert {role for by_role in expected.values() for role in by_role} == {"ductor_operator"}


def test_the_two_schemas_hold_the_same_tables_of_accounts() -> None:
    """And the operators' holds nothing else: what is not an account's stands in public alone."""
    shape = (
        "select table_name, column_name, data_type, is_nullable from information_schema.columns"
        " where table_schema = %s and table_name = any(%s) order by 1, 2"
    )
    tables = [
        name
        for (name,) in rows(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'operators'::regnamespace"
        )
    ]
    both = [name for name in tables if name != "django_admin_log"]
    assert rows(shape, "operators", both) == rows(shape, "public", both)
    assert {"people_person", "django_session", "mfa_authenticator"} <= set(both)
    assert rows("select to_regclass('public.django_admin_log')") == [(None,)]
    assert [name for name in tables if name.startswith(("tenants_", "workflows_", "django_q_"))] == []


def test_no_foreign_key_leads_from_one_schema_into_the_other() -> None:
    assert (
        rows(
            "select conname from pg_constraint c join pg_class a on a.oid = c.conrelid"
            " join pg_class b on b.oid = c.confrelid"
            " where c.contype = 'f' and a.relnamespace <> b.relnamespace"
        )
        == []
    )


def test_migrate_can_be_repeated_in_both_schemas_and_changes_nothing() -> None:
    def catalogue() -> list[Any]:
        return [
            rows(
                "select relname, relacl::text, relnamespace::regnamespace::text from pg_class"
                " where relnamespace in ('public'::regnamespace, 'operators'::regnamespace) order by 3, 1"
            ),
            rows(
                "select 'operators', app, name from operators.django_migrations union all"
                " select 'public', app, name from public.django_migrations order by 1, 2, 3"
            ),
            rows(
                "select proname, prosrc, proacl::text from pg_proc"
                " where pronamespace = 'public'::regnamespace order by 1"
            ),
        ]

    before = catalogue()
    assert ("operators", "people", "0001_initial") in before[1]
    assert ("operators", "tenants", "0001_initial") not in before[1]
    environment = {**os.environ, "DUCTOR_ROLE": "owner", "DJANGO_SETTINGS_MODULE": "ductor.settings"}
    command = [sys.executable, "-m", "django", "migrate", "--no-input"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "No migrations to apply" in done.stdout
    assert "Applying" not in done.stdout
    assert catalogue() == before
