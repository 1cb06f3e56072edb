"""R27: a backup is whole or fails aloud, and what is restored from it is Ductor again, row security and all."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tenants.db.guard import tenant_tables
from tests.api.callers import build_caller
from tests.builders import build_tenant, claim, complete, start
from tests.commands.running import ductor_process
from tests.database import as_role, touch
from tests.operations.servers import another_database, connect, run, url_of
from workflows.claims import record_steps
from workflows.leased import StepRecord

FULL_TABLES = {"workflows_task", "workflows_taskkey", "workflows_step", "workflows_definition", "tenants_act"} | {
    "tenants_apikey",
    "tenants_load",
    "tenants_turn",
    "tenants_policy",
}
# Rights that nobody ever changed stand as null or as the same list written out.
STRUCTURE = {
    "row security": """select c.oid::regclass::text, relrowsecurity, relforcerowsecurity, relowner::regrole::text,
        array(select acl::text from unnest(coalesce(relacl,
          acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))) acl order by 1)
        from pg_class c where relnamespace = any(%s::regnamespace[])""",
    "policies": """select polrelid::regclass::text, polname, polpermissive, polcmd::text, polroles::regrole[]::text,
        pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid) from pg_policy
        join pg_class c on c.oid = polrelid where relnamespace = any(%s::regnamespace[])""",
    "triggers": """select pg_get_triggerdef(t.oid), tgenabled::text from pg_trigger t join pg_class c on c.oid = tgrelid
        where not tgisinternal and relnamespace = any(%s::regnamespace[])""",
    "functions": """select p.oid::regprocedure::text, proowner::regrole::text, prosecdef, proconfig::text, prosrc,
        array(select acl::text from unnest(coalesce(proacl, acldefault('f', proowner))) acl order by 1)
        from pg_proc p where pronamespace = any(%s::regnamespace[])""",
    "constraints": """select conrelid::regclass::text, conname, pg_get_constraintdef(oid) from pg_constraint
        where connamespace = any(%s::regnamespace[])""",
    "schemas": """select nspname, nspowner::regrole::text, array(select unnest(nspacl)::text order by 1)
        from pg_namespace where oid = any(%s::regnamespace[])""",
}


def build_work() -> None:
    """Several tenants with rows in every table that work leaves behind, at every stage of it."""
    for number in (1, 2, 3):
        caller = build_caller()
        for index in range(number + 2):
            assert caller.start(key=f"k{index}").status_code == 201
        start(caller.tenant, number, delay_seconds=600)
    build_tenant(policy=False)
    taken = claim(9)
    now = datetime.now(UTC)
    steps = [StepRecord(task.claim, "pick", 1, "completed", {"é": [1, None]}, None, now, now) for task in taken]
    assert record_steps(records=steps) == set()
    assert complete(taken[3:], {"done": "“quoted” \\ back"}) == set()


def contents(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every tenant table's rows by tenant: how many, and a hash over all that they say; and the queues' clocks."""
    digest = (
        "select tenant_id, count(*), md5(string_agg(t::text, '|' order by t::text)) from {} t group by 1 order by 1"
    )
    with connect(url) as connection:
        found = {table: connection.execute(digest.format(table).encode()).fetchall() for table in tenant_tables()}
        found["clocks"] = connection.execute("select sequencename, last_value from pg_sequences").fetchall()
    return {name: sorted(tuples, key=repr) for name, tuples in found.items()}


def structure(url: str) -> dict[str, set[str]]:
    """Owners, rights, row security, policies, triggers, functions and constraints of all our schemas."""
    with connect(url) as connection:
        schemas = "select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'"
        oids = [oid for (oid,) in connection.execute(schemas).fetchall()]
        return {
            name: {str(row) for row in connection.execute(query.encode(), [oids]).fetchall()}
            for name, query in STRUCTURE.items()
        }


def dump(role: str, file: Path, *options: str) -> Any:
    touch()
    return run("pg_dump", "--format=custom", f"--file={file}", *options, f"--dbname={url_of(role)}")


def test_r27_a_backup_by_the_owner_is_restored_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_work()
    file = tmp_path / "ductor.dump"
    made = dump("owner", file, "--enable-row-security")
    assert (made.returncode, made.stderr) == (0, "")
    before, shape = contents(url_of("owner")), structure(url_of("owner"))
    assert {table for table, found in before.items() if len(found) >= 3} >= FULL_TABLES
    with another_database("restored", monkeypatch):
        done = run("pg_restore", "--exit-on-error", "--single-transaction", f"--dbname={url_of('owner')}", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        assert contents(url_of("owner")) == before
        after = structure(url_of("owner"))
        assert {name: after[name] ^ found for name, found in shape.items() if after[name] != found} == {}
        diagnosis = ductor_process("doctor", "--json").document
        assert [finding for finding in diagnosis["findings"] if finding["verdict"] != "ok"] == []
        with as_role("worker"):
            taken = claim(2)
            assert complete(taken) == set()
        assert len(taken) == 2
        with connect(url_of("web")) as web:
            assert web.execute("select count(*) from workflows_task").fetchone() == (0,)
    assert contents(url_of("owner")) == before


@pytest.mark.parametrize("options", [(), ("--enable-row-security",)], ids=["plain", "row security"])
@pytest.mark.parametrize("role", ["web", "worker", "operator"])
def test_r27_no_plain_role_makes_a_backup_that_lacks_rows(role: str, options: tuple[str, ...], tmp_path: Path) -> None:
    build_work()
    made = dump(role, tmp_path / "partial.dump", *options)
    assert made.returncode != 0
    assert "permission denied" in made.stderr or "row-level security" in made.stderr


@pytest.mark.parametrize("role", ["owner", "web"])
def test_r27_a_backup_that_row_security_would_cut_short_says_so(role: str, tmp_path: Path) -> None:
    """Without its flag pg_dump switches row security off, which PostgreSQL refuses to everybody it binds."""
    build_work()
    made = dump(role, tmp_path / "partial.dump", "--table=tenants_policy", "--data-only")
    assert made.returncode != 0
    assert 'query would be affected by row-level security policy for table "tenants_policy"' in made.stderr
