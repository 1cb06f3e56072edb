"""Whoever may run any SQL as the tenant surface's role can't become an operator (D3, issue 3).

The connection here is that role's own, without anything of Ductor's Python in between. What can't be hidden in
PostgreSQL is said, too: the names of tables stand in the catalogue, which everybody may read.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ductor.databases import connection_settings, psycopg_parameters
from tenants.people.operators import create_operator
from tests.builders import rows
from tests.database import as_role, owner

TABLES = (
    "people_person",
    "account_emailaddress",
    "account_emailconfirmation",
    "mfa_authenticator",
    "django_session",
    "django_admin_log",
    "django_content_type",
    "django_migrations",
    "auth_permission",
)
DENIED = psycopg.errors.InsufficientPrivilege
ROLES = ("web", "worker")


def connect(role: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(**psycopg_parameters(connection_settings(role)), autocommit=True)


def everything() -> list[Any]:
    """All that stands in the operators' schema, as the owner sees it."""
    names = [
        name
        for (name,) in rows(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'operators'::regnamespace order by 1"
        )
    ]
    return [(name, rows(f'select md5(t::text) from operators."{name}" t order by 1')) for name in names]


@pytest.fixture(autouse=True)
def operators() -> Iterator[None]:
    """An operator with a password, and proof that nothing of it moved."""
    with as_role("operator"):
        create_operator(email="ops@example.com", name="Olu", password="a quiet harbour at dawn")
    before = everything()
    assert dict(before)["people_person"] != []
    yield
    assert everything() == before


ON_EACH_TABLE = (
    "select * from operators.{0}",
    "select count(*) from operators.{0}",
    "insert into operators.{0} select * from operators.{0}",
    "insert into operators.{0} default values",
    "delete from operators.{0}",
    "truncate operators.{0}",
    "do $$ begin lock table operators.{0}; end $$",
    "alter table operators.{0} owner to current_user",
    "alter table operators.{0} disable trigger all",
    "create index on operators.{0} ((1))",
    "create rule r as on select to operators.{0} do instead nothing",
    "copy operators.{0} to stdout",
    "copy operators.{0} from stdin",
    "comment on table operators.{0} is 'x'",
    "drop table operators.{0}",
    "grant all on operators.{0} to current_user",
    "alter table operators.{0} set schema public",
    "create temp table t (like operators.{0})",
)
ON_THE_WHOLE = (
    "update operators.people_person set password = 'x', is_active = true",
    "update operators.people_person set session_epoch = 0",
    "delete from operators.mfa_authenticator",
    "insert into operators.django_session values ('a', 'b', now())",
    "create table operators.mine (id int)",
    "create function operators.mine() returns int language sql as 'select 1'",
    "create schema mine",
    "alter schema operators owner to current_user",
    "grant usage on schema operators to current_user",
    "grant ductor_operator to current_user",
    "grant ductor_owner to current_user",
    "grant ductor_engine to current_user",
    "set role ductor_operator",
    "set role ductor_owner",
    "set role ductor_engine",
    "set session authorization ductor_operator",
    "alter role ductor_operator password 'mine'",
    "alter role ductor_operator set search_path = public",
    "alter role ductor_operator in database ductor set search_path = public",
    "alter database ductor set search_path = public",
    "alter default privileges for role ductor_owner grant all on tables to public",
    "reassign owned by ductor_owner to current_user",
    "create role mine",
    "create foreign data wrapper mine",
    "create event trigger mine on ddl_command_start execute function tenants_refuse_change()",
    "create publication mine for all tables",
    "create view public.people as select 1",
    "create or replace function public.ductor_now() returns timestamptz language sql as 'select now()'",
    "create temp table people_person (id int)",
    "create trigger mine before insert on people_person execute function tenants_refuse_change()",
    "alter table people_person inherit operators.people_person",
    "create table public.mine () inherits (operators.people_person)",
    "update pg_catalog.pg_namespace set nspacl = null where nspname = 'operators'",
    "update pg_catalog.pg_class set relacl = null",
    "insert into pg_catalog.pg_auth_members select * from pg_catalog.pg_auth_members",
    "select * from pg_catalog.pg_authid",
    "select * from pg_catalog.pg_statistic",
    "select pg_read_file('pg_hba.conf')",
    "select lo_import('pg_hba.conf')",
    "copy people_person to program 'cat'",
    "copy people_person to '/dev/null'",
    "select pg_reload_conf()",
    "alter system set search_path = public",
    "load 'plpgsql'",
    "select query_to_xml('select * from operators.people_person', true, false, '')",
    "select schema_to_xml('operators', true, false, '')",
    "select table_to_xml('operators.people_person', true, false, '')",
)


@pytest.mark.parametrize("role", ROLES)
def test_no_table_of_operators_can_be_read_or_written(role: str) -> None:
    with connect(role) as plain:
        for table in TABLES:
            assert rows("select to_regclass(%s) is not null", f"operators.{table}") == [(True,)]
            for statement in ON_EACH_TABLE:
                assert_denied(plain, statement.format(table))


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_leads_there(role: str) -> None:
    with connect(role) as plain:
        for statement in ON_THE_WHOLE:
            assert_denied(plain, statement)


def assert_denied(plain: "psycopg.Connection[Any]", statement: str) -> None:
    try:
        plain.execute(statement)
    except DENIED:
        return
    raise AssertionError(f"not denied: {statement}")


@pytest.mark.parametrize("role", ROLES)
def test_no_search_path_leads_there(role: str) -> None:
    with connect(role) as plain:
        plain.execute("set search_path = operators, public")
        assert plain.execute("select current_schemas(true)").fetchone() == (["pg_catalog", "public"],)
        if role == "web":
            assert plain.execute("select count(*) from people_person").fetchone() == (0,)
        with pytest.raises(psycopg.errors.UndefinedTable):
            plain.execute("select * from django_admin_log")
        # A definer function keeps the path it was made with.
        assert plain.execute("select ductor_now() is not null").fetchone() == (True,)


def test_a_path_that_the_role_gives_itself_is_of_no_use_and_the_operators_keep_theirs() -> None:
    try:
        with connect("web") as plain:
            plain.execute("alter role ductor_web set search_path = operators, public")
        with connect("web") as plain:
            assert plain.execute("select count(*) from people_person").fetchone() == (0,)
        with connect("operator") as operator:
            assert operator.execute("show search_path").fetchone() == ("operators, public, pg_temp",)
            assert operator.execute("select count(*) from people_person").fetchone() == (1,)
    finally:
        owner().execute("select 1")
        _mend_path()


def _mend_path() -> None:
    with connect("web") as plain:
        plain.execute("alter role ductor_web set search_path = public, pg_temp")


@pytest.mark.parametrize("role", ROLES)
def test_no_function_that_the_role_may_call_can_see_the_schema(role: str) -> None:
    """Every function that runs with another's rights is the engine's, and the engine may not use the schema either."""
    callable_definers = rows(
        "select p.oid::regprocedure::text, p.proowner::regrole::text from pg_proc p where p.prosecdef"
        " and has_function_privilege(%s, p.oid, 'execute')",
        f"ductor_{role}",
    )
    assert callable_definers != []
    assert {holder for _, holder in callable_definers} == {"ductor_engine"}
    may = "select has_schema_privilege(%s, 'operators', 'usage') or has_schema_privilege(%s, 'operators', 'create')"
    for name in ("ductor_engine", f"ductor_{role}", "public"):
        assert rows(may, name, name) == [(False,)]


@pytest.mark.parametrize("role", ROLES)
def test_the_role_is_a_member_of_nothing_and_the_catalogue_shows_names_alone(role: str) -> None:
    assert rows("select 1 from pg_auth_members where member = %s::regrole", f"ductor_{role}") == []
    with connect(role) as plain:
        seen = plain.execute("select relname from pg_class where relnamespace = 'operators'::regnamespace").fetchall()
        assert ("people_person",) in seen
        assert plain.execute("select * from pg_stats where schemaname = 'operators'").fetchall() == []
        of_others = "select distinct query from pg_stat_activity where usename in ('ductor_operator', 'ductor_owner')"
        assert plain.execute(of_others).fetchall() in ([], [("<insufficient privilege>",)])
        columns = "select 1 from information_schema.columns where table_schema = 'operators'"
        assert plain.execute(columns).fetchall() == []
        verifier = "select rolpassword from pg_roles where rolname = 'ductor_operator'"
        assert plain.execute(verifier).fetchone() == ("********",)


def test_a_large_object_and_a_notification_are_nobody_s_way_in() -> None:
    """Nothing listens but workers, to a constant; nothing of Ductor reads large objects."""
    with connect("web") as plain:
        plain.execute("notify ductor_wake, 'select 1'")
        plain.execute("notify operators, 'x'")
    assert (
        rows(
            "select prosrc from pg_proc where prosrc ~* 'lo_(get|open|export)|loread'"
            " and pronamespace = 'public'::regnamespace"
        )
        == []
    )


def test_operators_have_no_hand_in_the_tenants_people_either() -> None:
    with connect("operator") as plain:
        for table in TABLES[:5]:
            for statement in ("select * from public.{0}", "delete from public.{0}", "truncate public.{0}"):
                with pytest.raises(DENIED):
                    plain.execute(statement.format(table))


def test_the_same_statement_meets_each_surface_s_own_people() -> None:
    with connect("web") as web, connect("operator") as operator:
        web.execute(
            "insert into people_person (id, email, name, password, is_active, created_at, session_epoch)"
            " values (gen_random_uuid(), 'ops@example.com', 'Not Olu', '', true, now(), 0)"
        )
        names = [one.execute("select name from people_person").fetchall() for one in (web, operator)]
    assert names == [[("Not Olu",)], [("Olu",)]]
