"""The task pages: what they show, how they stay up to date, and cancelling."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from tenants.policy import set_freeze
from tests.builders import PRINCIPAL, build_tenant, claim, complete, rows, start
from tests.database import as_role
from tests.pages.ground import furnish, visitor
from workflows.claims import Outcome, StepRecord, finish, heartbeat, record_steps

POLL = {"HX-Request": "true"}


def ids(text: str) -> list[str]:
    """Return the tasks of a list in their order."""
    return re.findall(r'id="task-([0-9a-f-]{36})"', text)


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return " ".join(answer.content.decode().split())


def test_filters_stand_in_the_address_and_show_what_fits() -> None:
    tenant = build_tenant()
    client = visitor(tenant, "viewer")
    [one] = start(tenant, workflow="bill", key="order-1")
    [two] = start(tenant, workflow="ship")
    complete(claim(limit=1))
    assert ids(shown(client, "/app/tasks/")) == [str(two), str(one)]
    assert ids(shown(client, "/app/tasks/?workflow=ship")) == [str(two)]
    assert ids(shown(client, "/app/tasks/?key=order-1")) == [str(one)]
    assert ids(shown(client, "/app/tasks/?state=completed")) == [str(one)]
    nothing = shown(client, "/app/tasks/?state=completed&workflow=ship")
    assert ids(nothing) == []
    assert "No task fits this filter" in nothing
    assert 'href="/app/tasks/?state=failed&amp;workflow=ship"' in nothing


@pytest.mark.parametrize(
    "query", ["state=done", "state=queued%00", "workflow=1%20x", "key=%00", "key=a%20b", "before=x"]
)
def test_a_filter_that_can_not_be_is_refused(query: str) -> None:
    client = visitor(build_tenant(), "viewer")
    assert client.get(f"/app/tasks/?{query}").status_code == 400


def test_pages_follow_each_other_and_each_task_comes_once() -> None:
    tenant = build_tenant()
    started = [str(one) for one in reversed(start(tenant, 120, workflow="bill"))]
    client = visitor(tenant, "viewer")
    seen, address = list[str](), "/app/tasks/?workflow=bill"
    for size in (50, 50, 20):
        page = client.get(address).content.decode()
        found = ids(page)
        assert len(found) == size
        seen += found
        older = re.search(r'<a class="button" href="([^"]+)" rel="next">', page)
        address = older[1].replace("&amp;", "&") if older else ""
    assert (seen, address) == (started, "")


def test_a_tenant_without_tasks_is_told_how_to_start_one() -> None:
    client = visitor(build_tenant(), "viewer")
    for address in ("/app/", "/app/tasks/"):
        assert "curl -X POST http://localhost/api/v1/tasks" in shown(client, address)


def test_a_look_again_is_answered_304_until_something_changes() -> None:
    tenant = build_tenant()
    [task] = start(tenant)
    client = visitor(tenant, "viewer")
    for address in ("/app/", f"/app/tasks/?top={task}", f"/app/tasks/{task}/"):
        first = client.get(address, headers=POLL)
        assert (first.status_code, first["Cache-Control"]) == (200, "no-store")
        assert "<html" not in first.content.decode()
        again = client.get(address, headers={**POLL, "If-None-Match": first["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    page = client.get(f"/app/tasks/{task}/").content.decode()
    assert first["ETag"].replace('"', "&quot;") in page
    complete(claim())
    changed = client.get(f"/app/tasks/{task}/", headers={**POLL, "If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert "data-ended" in changed.content.decode()


def test_newer_tasks_are_counted_while_the_rows_stay() -> None:
    tenant = build_tenant()
    old = [str(one) for one in reversed(start(tenant, 3))]
    client = visitor(tenant, "viewer")
    address = re.search(r'data-live="([^"]+)"', client.get("/app/tasks/").content.decode())
    assert address
    assert address[1] == f"/app/tasks/?top={old[0]}"
    start(tenant, 2)
    complete(claim(limit=1))
    later = client.get(address[1], headers=POLL).content.decode()
    assert ids(later) == old
    assert "2 new tasks" in later
    assert later.count('class="state completed"') == 1
    start(tenant, 60)
    assert "50 or more new tasks" in client.get(address[1], headers=POLL).content.decode()


def test_a_task_shows_its_steps_in_time_and_in_a_table_alike() -> None:
    furnished = furnish("alpha")
    page = shown(visitor(furnished.tenant, "viewer"), f"/app/tasks/{furnished.task}/")
    described = re.search(r'<desc id="timeline-text">(.*?)</desc>', page)
    assert described
    assert "step-alpha, completed" in described[1]
    assert f'href="/app/tasks/{furnished.task}/steps/step-alpha/1/"' in page
    assert 'role="img" aria-labelledby="timeline-title timeline-text"' in page
    assert '"note": "input-alpha"'.replace('"', "&quot;") in page
    assert '"result": "output-alpha"'.replace('"', "&quot;") in page
    assert "data-ended" in page and "Cancel this task" not in page


def test_steps_are_drawn_where_they_ran_and_inside_the_drawing() -> None:
    tenant = build_tenant()
    [task] = start(tenant)
    [one] = claim()
    begun = datetime.now(UTC)
    for name, since, until in (("first", 0, 10), ("second", 10, 10), ("third", 30, 40)):
        times = (begun + timedelta(seconds=since), begun + timedelta(seconds=until))
        record_steps(records=[StepRecord(one.claim, name, 1, "completed", None, None, *times)])
    complete([one])
    page = visitor(tenant, "viewer").get(f"/app/tasks/{task}/").content.decode()
    bars = [
        (float(x), float(w))
        for x, w in re.findall(r'<rect class="completed" x="([\d.]+)" y="\d+" width="([\d.]+)"', page)
    ]
    assert bars == [(170.0, 137.5), (307.5, 2.0), (582.5, 137.5)]


def test_a_task_says_why_it_does_not_run() -> None:
    tenant = build_tenant(max_leases=1)
    client = visitor(tenant, "viewer")
    soon = datetime.now(UTC) + timedelta(hours=1)
    [waiting] = start(tenant, due_at=soon)
    assert f"Not due before {soon:%Y-%m-%d %H:%M:%S} UTC." in shown(client, f"/app/tasks/{waiting}/")
    start(tenant)
    [queued] = start(tenant)
    address = f"/app/tasks/{queued}/"
    assert "claimed in its turn" in shown(client, address)
    [held] = claim()
    assert "All 1 leases of this tenant are in use" in shown(client, address)
    complete([held])
    with as_role("operator"):
        set_freeze(tenant_id=tenant.id, freeze={"claims"}, principal=PRINCIPAL)
    assert "The operator has frozen this tenant" in shown(client, address)


def test_progress_and_failure_are_shown() -> None:
    tenant = build_tenant()
    [task] = start(tenant)
    [one] = claim()
    client = visitor(tenant, "viewer")
    heartbeat(claims=[one.claim], progress={one.claim: {"done": 3, "total": 4, "note": "three <b>of</b> four"}})
    page = shown(client, f"/app/tasks/{task}/")
    assert '<progress max="100" value="75"' in page
    assert "three &lt;b&gt;of&lt;/b&gt; four" in page
    error = {"class": "ValueError", "message": "no such order", "kind": "error"}
    finish(outcomes=[Outcome(one.claim, "retry", error=error, failure=True, delay_seconds=60)])
    page = shown(client, f"/app/tasks/{task}/")
    assert "retrying" in page and "Failures so far: 1." in page and "no such order" in page


@pytest.mark.parametrize("progress", [1, "x", [1], {"done": "x"}, {"done": 1, "total": 0}, {"done": 1, "total": "x"}])
def test_progress_of_any_shape_breaks_no_page(progress: Any) -> None:
    tenant = build_tenant()
    [task] = start(tenant)
    [one] = claim()
    heartbeat(claims=[one.claim], progress={one.claim: progress})
    assert visitor(tenant, "viewer").get(f"/app/tasks/{task}/").status_code == 200


def test_a_long_value_is_cut_on_the_page_and_whole_in_the_download() -> None:
    tenant = build_tenant()
    text = "é" * 60_000
    [task] = start(tenant, input={"text": text})
    client = visitor(tenant, "viewer")
    page = client.get(f"/app/tasks/{task}/").content.decode()
    assert 19_000 < page.count("é") < 20_001
    assert "the download has all of it" in page
    assert client.get(f"/app/tasks/{task}/input.json").json() == {"text": text}


def test_cancelling_keeps_the_reason_and_the_person() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "operator", "pat@example.com")
    answer = client.post(f"/app/tasks/{furnished.queued}/cancel/", {"reason": "not needed"})
    assert answer["Location"] == f"/app/tasks/{furnished.queued}/"
    assert "The task is cancelled." in shown(client, answer["Location"])
    assert rows("select state, reason from workflows_task where id = %s", furnished.queued) == [
        ("cancelled", "not needed")
    ]
    [(kind, name, request_id)] = rows(
        "select principal ->> 'kind', principal ->> 'name', request_id from tenants_act where reason = 'not needed'"
    )
    assert (kind, name, len(request_id)) == ("person", "pat@example.com", 36)


def test_what_has_ended_and_what_is_no_reason_are_told_and_change_nothing() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "operator")
    before = rows("select * from workflows_task order by id"), rows("select count(*) from tenants_act")
    client.post(f"/app/tasks/{furnished.task}/cancel/", {"reason": "late"})
    assert "has ended" in shown(client, f"/app/tasks/{furnished.task}/")
    for reason in ("x" * 1001, "two\nlines\x07", "\u202eright to left"):
        client.post(f"/app/tasks/{furnished.queued}/cancel/", {"reason": reason})
        assert "Not cancelled" in shown(client, f"/app/tasks/{furnished.queued}/")
    assert (rows("select * from workflows_task order by id"), rows("select count(*) from tenants_act")) == before
