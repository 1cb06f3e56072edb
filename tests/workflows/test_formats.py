"""C21: what a newer Ductor stored is a typed error here, is never read as empty, and stays as it is."""

from typing import Any

import pytest

from ductor import Workflow
from ductor.diagnosis.work import formats
from tenants.scope import attach
from tests import clock
from tests.builders import assert_counters_true, build_tenant, rows
from tests.database import as_role, owner
from tests.workflows.conftest import TestWorker
from workflows import starting, turns
from workflows.errors import FormatUnknown
from workflows.formats import known_definition
from workflows.queries import list_steps

pytestmark = pytest.mark.usefixtures("flows")

KEPT = "select input, output, error, progress, attempt, failures, format, terminal_at from workflows_task"


def flow(name: str = "forward") -> Workflow:
    made = Workflow(name, version=1)
    made.step("only")(lambda ctx: {"seen": ctx.input})
    return made


def test_c21_a_task_of_a_newer_format_is_left_as_it_is_and_waits_for_who_can_read_it(
    worker: TestWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, other = build_tenant(), build_tenant()
    made = flow()
    task = made.start({"n": 1}, tenant=tenant.id)
    beside = made.start({"n": 2}, tenant=other.id)
    owner().execute("update workflows_task set format = 2 where tenant_id = %s", [tenant.id])
    before = rows(f"{KEPT} where tenant_id = %s", tenant.id)
    worker.run_all()
    assert (task.refresh().state, task.refresh().reason) == ("waiting", "unknown_format")
    assert rows(f"{KEPT} where tenant_id = %s", tenant.id) == before
    assert beside.refresh().state == "completed"
    with as_role("operator"):
        finding = formats()
    assert (finding.verdict, finding.detail.split(".")[0]) == ("failure", f"1 tasks of tenant {tenant.id}")

    monkeypatch.setattr(turns, "TASK_FORMAT", 2)
    clock.advance(31)
    worker.run_all()
    assert task.result(timeout=0) == {"seen": {"n": 1}}
    assert_counters_true()


def test_c21_a_definition_of_a_newer_format_is_neither_used_nor_written_over(worker: TestWorker) -> None:
    tenant = build_tenant()
    made = flow()
    task = made.start(tenant=tenant.id)
    worker.run_all()
    owner().execute('update workflows_definition set graph = \'{"format": 2, "nodes": []}\'')
    before = rows("select * from workflows_definition"), rows("select * from workflows_task")
    starting._known.clear()
    with pytest.raises(FormatUnknown) as refused:
        made.start(tenant=tenant.id)
    assert refused.value.fields == {"workflow": "forward", "version": 1, "format": 2}
    with attach(tenant.id), pytest.raises(FormatUnknown):
        list_steps(tenant_id=tenant.id, task_id=task.id)
    assert (rows("select * from workflows_definition"), rows("select * from workflows_task")) == before
    with as_role("operator"):
        finding = formats()
    assert (finding.verdict, finding.detail.split(".")[0]) == ("failure", f"forward version 1 of tenant {tenant.id}")


@pytest.mark.parametrize(
    "document", [{}, [], None, "", {"format": None}, {"format": "1"}, {"format": 0}, {"format": True}]
)
def test_a_document_without_a_format_is_not_empty_but_unknown(document: Any) -> None:
    with pytest.raises(FormatUnknown):
        known_definition(document, workflow="w", version=1)
