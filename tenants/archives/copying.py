"""Rows between tables and file, by COPY: block by block, however many there are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, transaction
from psycopg import sql

from tenants.archives import archive
from tenants.archives.archive import Manifest, Reader, TableEntry
from tenants.archives.rules import declared
from tenants.errors import ArchiveInvalid
from tenants.queries import TenantView
from tenants.scope import attach, tenant_scope
from tenants.store import query, translate


def columns_of(table: str) -> dict[str, str]:
    """Return a table's columns, in their order, with their types as PostgreSQL writes them."""
    return dict(
        query(
            "select attname::text, format_type(atttypid, atttypmod) from pg_attribute"
            " where attrelid = to_regclass(%s) and attnum > 0 and not attisdropped order by attnum",
            [f"public.{table}"],
        )
    )


def write(*, tenant: TenantView, target: Path, version: str) -> Manifest:
    """Write every tenant table's rows of one tenant, all of one moment, to a new file; returns what is in it.

    Raises:
        RuleMissing: it is not said what a restore would do with some table.
        FileExistsError, OSError: as `archive.create`.
    """
    tables = sorted(declared())
    with archive.create(target) as writer, _snapshot(tenant.id):
        ((now,),) = query("select ductor_now()")
        entries = {table: _write_table(writer, table, tenant.id) for table in tables}
        manifest = Manifest(version, now.astimezone(UTC).isoformat(), tenant.id, tenant.slug, entries)
        return Manifest(version, manifest.made_at, tenant.id, tenant.slug, entries, writer.close(manifest))


@contextmanager
def _snapshot(tenant_id: UUID) -> Iterator[None]:
    """A transaction that sees one moment of the tenant's rows and can't write."""
    with attach(tenant_id), transaction.atomic(durable=True):
        query("set transaction isolation level repeatable read, read only")
        with tenant_scope():
            yield


def _write_table(writer: archive.Writer, table: str, tenant_id: UUID) -> TableEntry:
    columns = columns_of(table)
    statement = sql.SQL("copy (select {} from {} where tenant_id = {}) to stdout").format(
        _names(columns), sql.Identifier("public", table), sql.Literal(tenant_id)
    )
    with connection.cursor() as cursor, writer.member(table) as member:
        with cursor.copy(statement.as_string(cursor.connection)) as blocks:
            for block in blocks:
                member.write(block)
        return TableEntry(columns, cursor.rowcount, member.sha256)


def stage(*, tenant_id: UUID, reader: Reader) -> None:
    """Put the file's rows into temporary tables of this transaction, `staged_<table>`, and check that they fit here.

    Raises:
        ArchiveInvalid: the tables or columns differ from this database's, a member is damaged, or a row belongs to
            another tenant. Nothing but the temporary tables was written.
    """
    entries = reader.manifest.tables
    differing = sorted(set(entries) ^ set(declared()))
    differing += [
        table for table in sorted(set(entries) & set(declared())) if entries[table].columns != columns_of(table)
    ]
    if differing:
        raise ArchiveInvalid(
            f"The file comes from a database whose tables differ from these: {', '.join(differing)}. Restore it with "
            f"the version that wrote it, {reader.manifest.version}.",
            tables=differing,
        )
    for table, entry in entries.items():
        _stage_table(reader, table, entry, tenant_id)


def _stage_table(reader: Reader, table: str, entry: TableEntry, tenant_id: UUID) -> None:
    place = {"staged": sql.Identifier("pg_temp", staged(table)), "table": sql.Identifier("public", table)}
    run(sql.SQL("create temporary table {staged} (like {table}) on commit drop"), place)
    with connection.cursor() as cursor:
        copy = sql.SQL("copy {staged} ({columns}) from stdin").format(columns=_names(entry.columns), **place)
        try:
            with cursor.copy(copy.as_string(cursor.connection)) as sink:
                for block in reader.blocks(table):
                    sink.write(block)
        except psycopg.Error as error:
            if typed := translate(error):
                raise typed from error
            raise ArchiveInvalid(f"The rows of {table} can't be read by this database.", table=table) from error
    counting = sql.SQL("select count(*), count(*) filter (where tenant_id <> {tenant_id}) from {staged}")
    ((rows, foreign),) = run(counting, place | {"tenant_id": sql.Literal(tenant_id)})
    if foreign:
        raise ArchiveInvalid(f"{foreign} rows of {table} belong to another tenant.", table=table)
    if rows != entry.rows:
        raise ArchiveInvalid(f"{table} has {rows} rows and not {entry.rows} as the manifest says.", table=table)
    run(sql.SQL("analyze {staged}"), place)


def staged(table: str) -> str:
    """Return the name of the temporary table in which a table's rows of the file stand."""
    return f"staged_{table}"


def run(statement: sql.SQL, parts: Mapping[str, sql.Composable]) -> list[tuple[Any, ...]]:
    """Run a statement whose tables and values are put in; errors as in `tenants.store.query`."""
    with connection.cursor() as cursor:
        text = statement.format(**parts).as_string(cursor.connection)
    return query(text)


def _names(columns: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
