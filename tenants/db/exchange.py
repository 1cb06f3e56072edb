"""One statement as a whole transaction of a tenant, in one exchange with the server.

Django's way costs a round trip each for BEGIN, the tenant, the statement and COMMIT, and a thread gives up the
interpreter at every one of them. Here all four are sent together (the protocol's pipeline) and answered together: what
follows a statement that failed is skipped by the server, COMMIT too, so that a failure leaves nothing behind.
"""

import functools
from collections.abc import Callable, Generator, Sequence
from typing import Any
from uuid import UUID

import psycopg
from django_prometheus.db import execute_total, query_duration_seconds
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

_STATEMENT, _COMMIT, _ANSWERS = 2, 3, 5


def execute_whole(wrapper: Any, tenant_id: UUID, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Run `sql` (with %s for each parameter) between BEGIN and COMMIT, bound to `tenant_id`, and return its rows.

    The wrapper's execute wrappers see the statement, as they see any other.

    Raises:
        psycopg.Error: the statement or the commit failed.
    """

    def execute(sql: str, params: Sequence[Any], many: bool, context: dict[str, Any]) -> list[tuple[Any, ...]]:
        return _exchange(wrapper.connection, tenant_id, sql, params)

    run: Callable[..., list[tuple[Any, ...]]] = execute
    for wrap in reversed(wrapper.execute_wrappers):
        run = functools.partial(wrap, run)
    execute_total.labels(wrapper.alias, wrapper.vendor).inc()
    with query_duration_seconds.labels(alias=wrapper.alias, vendor=wrapper.vendor).time():
        return run(sql, params, False, {"connection": wrapper, "cursor": None})


def _exchange(
    connection: "psycopg.Connection[Any]", tenant_id: UUID, sql: str, params: Sequence[Any]
) -> list[tuple[Any, ...]]:
    values = Transformer(connection)
    dumped = values.dump_sequence(params, [PyFormat.AUTO] * len(params))
    pgconn = connection.pgconn
    try:
        pgconn.enter_pipeline_mode()
        pgconn.send_query_params(b"BEGIN", None)
        # SET takes no parameters; a UUID object can't carry anything but hex digits and hyphens.
        pgconn.send_query_params(f"SET LOCAL ductor.tenant_id = '{tenant_id}'".encode(), None)
        pgconn.send_query_params(_numbered(sql), dumped, param_types=values.types, param_formats=values.formats)
        pgconn.send_query_params(b"COMMIT", None)
        pgconn.pipeline_sync()
        results = connection.wait(_answers(pgconn))
    finally:
        _leave(connection)
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result, encoding=connection.info.encoding)
    if results[_COMMIT].command_status != b"COMMIT":
        raise psycopg.InternalError("PostgreSQL answered COMMIT with something else.")
    values.set_pgresult(results[_STATEMENT])
    return values.load_rows(0, results[_STATEMENT].ntuples, tuple)


def _answers(pgconn: PGconn) -> Generator[Any, Any, list[PGresult]]:
    """Wait for the answers to what was sent: a result for each of the four, and one for the end of the exchange."""
    yield from generators.send(pgconn)
    results: list[PGresult] = []
    for _ in range(_ANSWERS):
        results += yield from generators.fetch_many(pgconn)
    return results


def _leave(connection: "psycopg.Connection[Any]") -> None:
    """Leave the connection as any other borrower would, or, where that can't be, closed."""
    pgconn = connection.pgconn
    try:
        if pgconn.pipeline_status != PipelineStatus.OFF:
            pgconn.exit_pipeline_mode()
        if pgconn.transaction_status == TransactionStatus.INERROR:
            connection.rollback()
    except psycopg.Error:
        connection.close()


@functools.lru_cache(maxsize=64)
def _numbered(sql: str) -> bytes:
    first, *rest = sql.split("%s")
    return "".join([first, *(f"${number}{part}" for number, part in enumerate(rest, 1))]).encode()
