"""What the suite's processes send to tenant tables is watched, whichever process and role it is."""

import pytest
from django.db import connection, transaction

from ductor.diagnosis import examine
from tenants.db.guard import names_tenant_table
from tenants.scope import attach
from tests.builders import build_tenant
from tests.cluster.conftest import StartCluster
from tests.cluster.tasks import chores, until_states
from tests.database import as_role
from tests.watching import statements


def test_a_statement_that_a_clusters_worker_sends_without_its_tenant_is_noted(start_cluster: StartCluster) -> None:
    chores(build_tenant(), "careless")
    start_cluster()
    until_states(completed=1)
    assert statements.take() == ["worker: select name from workflows_definition"]


@pytest.mark.parametrize("role", ["web", "worker", "operator", "owner"])
def test_so_is_every_role_of_this_process(role: str) -> None:
    tenant = build_tenant()
    with as_role(role), attach(tenant.id), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("select max(queue) from workflows_task")
        cursor.execute("select max(queue) from workflows_task where tenant_id = %s", [tenant.id])
    assert statements.take() == [f"{role}: select max(queue) from workflows_task"]


def test_every_statement_that_may_read_over_all_tenants_is_sent() -> None:
    sent: list[str] = []

    def note(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        sent.append(statements.flat(str(sql)))
        return execute(sql, params, many, context)

    with as_role("operator"), connection.execute_wrapper(note):
        examine()
    over_all = [sql for sql in sent if names_tenant_table(sql) and "tenant_id" not in sql]
    unused = {begin for begin in statements.OVER_ALL_TENANTS if not any(sql.startswith(begin) for sql in over_all)}
    assert unused == set()
