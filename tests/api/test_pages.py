"""Paging (S7, S8, B70): each task once, while others are written, and a cursor opens no other list."""

from typing import Any

import pytest
from django.core import signing

from tenants.api.cursors import write_cursor
from tenants.identity import new_id
from tests.api.callers import TASKS, Caller, assert_problem, build_caller
from tests.builders import rows, start


def _walk(caller: Caller, limit: int, query: str = "", between: Any = None) -> list[str]:
    seen: list[str] = []
    cursor = ""
    while True:
        page = caller.get(f"{TASKS}?limit={limit}{query}{cursor}").json()
        seen += [task["id"] for task in page["data"]]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            return seen
        assert len(page["data"]) == limit
        cursor = f"&cursor={page['next_cursor']}"
        if between:
            between()


def test_a_thousand_tasks_of_one_moment_come_once_each_while_others_are_written() -> None:
    caller = build_caller(max_outstanding=5000)
    ids = {str(task_id) for task_id in start(caller.tenant, 1000)}
    assert rows("select count(distinct created_at) from workflows_task") == [(1,)]
    seen = _walk(caller, 97, between=lambda: start(caller.tenant))
    assert len(seen) == len(set(seen)) == 1000
    assert set(seen) == ids


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 200])
def test_every_page_size_shows_all(limit: int) -> None:
    caller = build_caller()
    ids = [str(task_id) for task_id in start(caller.tenant, 3)]
    assert sorted(_walk(caller, limit)) == sorted(ids)


def test_filters_hold_across_pages() -> None:
    caller = build_caller()
    start(caller.tenant, 5, workflow="other-one")
    wanted = start(caller.tenant, 5)
    assert sorted(_walk(caller, 2, "&workflow=order-review")) == sorted(map(str, wanted))


def test_a_cursor_of_another_tenant_of_another_list_or_changed_is_400() -> None:
    one, other = build_caller(), build_caller()
    start(one.tenant, 3)
    start(other.tenant, 3)
    theirs = other.get(f"{TASKS}?limit=1").json()["next_cursor"]
    mine = one.get(f"{TASKS}?limit=1").json()["next_cursor"]
    elsewhere = write_cursor(tenant_id=one.tenant.id, listing="keys", place=new_id())
    row, signature = mine.split(":")
    changed = f"{'0' if row[0] != '0' else '1'}{row[1:]}:{signature}"
    self_made = signing.Signer(key="a guess", salt=f"ductor.cursor:{one.tenant.id}:tasks").sign(new_id().hex)
    for cursor in (theirs, elsewhere, changed, self_made, row, f"{row}:", mine + "x", mine[:-1], "x" * 1000):
        answer = one.get(f"{TASKS}?limit=1&cursor={cursor}")
        document = assert_problem(answer, 400, "invalid_request")
        assert document["errors"][0]["parameter"] == "cursor"
    assert one.get(f"{TASKS}?limit=1&cursor={mine}").status_code == 200
