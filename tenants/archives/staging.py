"""Staged rows in the place of live ones, table by table as its rule says."""

from typing import Any
from uuid import UUID

from psycopg import sql

from tenants.archives.copying import run, staged
from tenants.archives.rules import EVERY_COLUMN, Restored, Rule, declared
from tenants.errors import ArchiveMismatch


def refuse_disagreeing(*, tenant_id: UUID) -> None:
    """Refuse a file whose rows contradict live ones that a restore never changes.

    Raises:
        ArchiveMismatch: rows with the same key differ; nothing was written.
    """
    for table, rule in declared().items():
        if rule.rule is Rule.ADD and rule.agree:
            ((rows,),) = run(
                sql.SQL(
                    "select count(*) from {table} t join {staged} s on s.tenant_id = t.tenant_id and {found}"
                    " where t.tenant_id = {tenant_id} and row({mine}) is distinct from row({theirs})"
                ),
                _parts(table, rule, tenant_id)
                | {"mine": _columns("t", rule.agree), "theirs": _columns("s", rule.agree)},
            )
            if rows:
                raise ArchiveMismatch(
                    f"{rows} rows of {table} stand here with other content than in the file. They are never changed, "
                    "so the file can't be put in.",
                    table=table,
                    rows=rows,
                )


def compare(*, tenant_id: UUID) -> dict[str, dict[str, Any]]:
    """Return each table's rule, its rows here and in the file, and how many would be taken out and put in."""
    found = {}
    for table, rule in declared().items():
        ((live, in_file, missing),) = run(
            sql.SQL(
                "select (select count(*) from {table} where tenant_id = {tenant_id}),"
                " (select count(*) from {staged} where tenant_id = {tenant_id}),"
                " (select count(*) from {staged} s where s.tenant_id = {tenant_id} and not exists"
                " (select from {table} t where t.tenant_id = s.tenant_id and {found}))"
            ),
            _parts(table, rule, tenant_id),
        )
        out, put = {Rule.REPLACE: (live, in_file), Rule.ADD: (0, missing)}.get(rule.rule, (0, 0))
        found[table] = {"rule": rule.rule.value, "live": live, "in_file": in_file, "taken_out": out, "put_in": put}
    return found


def put_in_place(*, tenant_id: UUID) -> None:
    """Take live rows out and put staged ones in. The caller holds the tenant's latch.

    Raises:
        django.db.IntegrityError: rows of the file contradict each other.
    """
    rules = declared()
    for table, rule in reversed(rules.items()):
        if rule.rule is Rule.REPLACE:
            run(sql.SQL("delete from {table} where tenant_id = {tenant_id}"), _parts(table, rule, tenant_id))
    for table, rule in rules.items():
        statement = "insert into {table} select * from {staged} s where s.tenant_id = {tenant_id}"
        parts = _parts(table, rule, tenant_id)
        if rule.rule is Rule.REPLACE:
            run(sql.SQL(statement + (" order by {order}" if rule.order else "")), parts)
        elif rule.rule is Rule.ADD:
            missing = " and not exists (select from {table} t where t.tenant_id = s.tenant_id and {found})"
            run(sql.SQL(statement + missing), parts)


def _parts(table: str, rule: Restored, tenant_id: UUID) -> dict[str, sql.Composable]:
    same = [sql.SQL("t.{0} = s.{0}").format(sql.Identifier(column)) for column in rule.key]
    return {
        "table": sql.Identifier("public", table),
        "staged": sql.Identifier("pg_temp", staged(table)),
        "tenant_id": sql.Literal(tenant_id),
        "found": sql.SQL(" and ").join(same) if same else sql.SQL("true"),
        "order": sql.Identifier(rule.order),
    }


def _columns(alias: str, columns: tuple[str, ...]) -> sql.Composable:
    if columns == EVERY_COLUMN:
        return sql.SQL("{}.*").format(sql.Identifier(alias))
    return sql.SQL(", ").join(sql.Identifier(alias, column) for column in columns)
