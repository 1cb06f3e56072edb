"""The first page: queues, leases, outcomes, who is near a limit, clusters; and lists of many tenants, page by page."""

import re
import uuid

import pytest

from tests import clock
from tests.builders import build_tenant, claim, complete, start
from tests.database import as_role, owner
from tests.surfaces import Visitor, operator_surface
from workflows.clusters import beat


@pytest.fixture
def ann() -> Visitor:
    return operator_surface().operator()


def _beat(host: str, busy: int) -> None:
    with as_role("worker"):
        beat(cluster_id=uuid.uuid4(), host=host, pid=7, queues=("default",), status="Working", workers=4, busy=busy)


def _figures(text: str) -> dict[str, str]:
    found = re.findall(r'class="dk-figure[^"]*"><span>([^<]+)</span><strong>([^<]*)</strong>', text)
    return dict(found)


def test_the_dashboard_tells_how_the_platform_stands(ann: Visitor) -> None:
    tight = build_tenant("tight", max_outstanding=5)
    roomy = build_tenant("roomy", max_outstanding=100)
    start(roomy, 4)
    complete(claim(1))
    start(tight, 4)
    claim(2)
    start(roomy, 1, delay_seconds=600)
    _beat("silent-host", busy=1)
    clock.advance(90)
    _beat("live-host", busy=3)
    for path in ("/admin/", "/admin/live/"):
        answer = ann.get(path)
        assert answer.status == 200
        assert len(answer.queries) <= 15
        assert not any(re.search(r"from workflows_task|join workflows_task", query) for query in answer.queries)
        figures = _figures(answer.text)
        shown = [figures[name] for name in ("Ready", "Active leases", "Waiting", "Completed", "Failed")]
        assert shown == ["5", "2", "1", "1", "0"]
        assert figures["Oldest ready task"].startswith("1 min")
        near = answer.text.split("Tenants near a limit</h2>")[1].split("<h2>")[0]
        assert "/admin/t/tight/" in near and "4 of 5" in near
        assert "/admin/t/roomy/" not in near
        clusters = answer.text.split("<h2>Clusters</h2>")[1]
        live, silent = clusters.split("live-host")[1].split("silent-host")
        assert "3 of 4" in live and ">working<" in live
        assert ">silent<" in silent and re.search(r"\b[1-9] min \d+ s ago", silent)


def test_a_fragment_for_a_session_that_has_ended_leads_the_whole_page_to_the_sign_in() -> None:
    answer = operator_surface().visitor().get("/admin/live/", HX_Request="true")
    assert answer.status == 200
    assert answer.headers["hx-redirect"].startswith("/accounts/login/?next=")
    assert "Queues" not in answer.text


def test_the_page_is_renewed_without_a_script_in_it(ann: Visitor) -> None:
    text = ann.get("/admin/").text
    assert 'data-live="/admin/live/"' in text
    assert re.search(r"<script(?![^>]* src=)", text) is None
    assert re.search(r"\son[a-z]+=", text) is None


def test_tenants_come_page_by_page_each_once_while_others_are_made(ann: Visitor) -> None:
    owner().execute(
        "insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)"
        " select gen_random_uuid(), 't-' || lpad(n::text, 3, '0'), 't_' || n, '', 'active', 'free', now()"
        " from generate_series(1, 120) n"
    )
    for address in ("/admin/tenants/", "/admin/policies/"):
        seen: list[str] = []
        path = f"{address}?slug=t-"
        while path:
            answer = ann.get(path)
            assert len(answer.queries) <= 15
            assert not any("count(" in query.lower() for query in answer.queries)
            page = re.findall(r'<th scope="row"><a href="/admin/t/(t-\d+)/"', answer.text)
            assert len(page) <= 50
            seen += page
            following = re.search(r'href="(\?[^"]+)">Next page', answer.text)
            path = address + following[1].replace("&amp;", "&") if following else ""
        assert seen == [f"t-{number:03}" for number in range(1, 121)]
