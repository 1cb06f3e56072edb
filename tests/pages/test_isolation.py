"""One tenant's people see nothing of another: no page holds a marker of it, and its ids are like made-up ones (B70)."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client

from ductor.pages import urls
from tenants.identity import new_id
from tests.builders import rows
from tests.pages.ground import BEFORE_A_TENANT, Furnished, addresses, furnish, visitor

METHODS = {
    pattern.name: pattern.callback.view_class.permissions
    for pattern in urls.urlpatterns
    if pattern.name not in BEFORE_A_TENANT
}
TABLES = ("workflows_task", "tenants_apikey", "tenants_member", "tenants_invitation", "tenants_act")


class Links(HTMLParser):
    """Collects where a page leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {str(value) for name, value in attrs if name in ("href", "hx-get", "data-live") and value}


def crawl(client: Client, *starts: str) -> dict[str, str]:
    """Follow every link below /app/; returns the text of each page."""
    todo, seen = list(starts), dict[str, str]()
    while todo:
        address = todo.pop()
        if address in seen or not address.startswith("/app/") or "choose" in address:
            continue
        answer = client.get(address)
        assert answer.status_code in (200, 403, 405), address
        seen[address] = answer.content.decode()
        found = Links(seen[address]).found
        todo += [address.partition("?")[0] + link if link.startswith("?") else link for link in found]
    return seen


@pytest.mark.parametrize("role", ["owner", "auditor"])
def test_a_member_who_follows_every_link_finds_no_marker_of_another_tenant(role: str) -> None:
    mine, theirs = furnish("alpha"), furnish("omega")
    client = visitor(mine.tenant, role)
    pages = crawl(client, *addresses(mine).values(), "/app/")
    everything = "".join(pages.values())
    assert len(pages) > 25
    assert "omega" not in everything
    hidden = (theirs.tenant.id, theirs.task, theirs.queued, theirs.key.id, theirs.key.prefix, theirs.member.id)
    assert [value for value in hidden if str(value) in everything] == []
    for kind in ("work", "key", "input", "output", "step", "out", "reason", "name", "owner", "viewer"):
        assert f"{kind}-alpha" in everything, kind


def test_the_crawl_would_find_the_other_s_markers_with_the_other_s_session() -> None:
    furnish("alpha")
    theirs = furnish("omega")
    everything = "".join(crawl(visitor(theirs.tenant, "owner"), *addresses(theirs).values()).values())
    assert "omega" in everything
    assert "alpha" not in everything


def test_another_tenant_s_ids_and_made_up_ones_are_one_page() -> None:
    mine, theirs = furnish("alpha"), furnish("omega")
    client = visitor(mine.tenant, "owner")
    made_up = _elsewhere(theirs)
    before = _everything_of(theirs)
    for name, address in addresses(theirs).items():
        invented = addresses(made_up)[name]
        if address == invented:
            continue
        for method in METHODS[name]:
            data = {"role": "viewer"} if method == "POST" else {}
            answers = [getattr(client, method.lower())(one, data) for one in (address, invented)]
            assert [answer.status_code for answer in answers] == [404, 404], name
            assert _without_request(answers[0]) == _without_request(answers[1]), name
    assert _everything_of(theirs) == before


@pytest.mark.parametrize("junk", ["x", "1", "None", "%00", "..%2f", "0" * 3000, "01A22D0F-A78F-7411-9D50-8EBDE6A05C1D"])
def test_what_is_no_id_is_answered_like_one_that_never_was(junk: str) -> None:
    client = visitor(furnish("alpha").tenant, "owner")
    for address in (f"/app/tasks/{junk}/", f"/app/members/{junk}/remove/"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert _without_request(answer) == _without_request(client.get(f"/app/tasks/{new_id()}/"))


@pytest.mark.parametrize("name", ["before", "top", "after"])
def test_a_position_of_another_tenant_s_opens_nothing_and_junk_is_refused(name: str) -> None:
    mine, theirs = furnish("alpha"), furnish("omega")
    client = visitor(mine.tenant, "owner")
    for place in ("tasks", "keys", "members", "audit"):
        for position in (theirs.task, theirs.key.id, theirs.member.id):
            answer = client.get(f"/app/{place}/?{name}={position}")
            assert answer.status_code == 200
            assert "omega" not in answer.content.decode()
        assert client.get(f"/app/{place}/?{name}=x%00").status_code in (200, 400)


def _elsewhere(theirs: Furnished) -> Furnished:
    """The same addresses with ids that nobody has."""
    return replace(
        theirs,
        task=new_id(),
        key=replace(theirs.key, id=new_id()),
        member=replace(theirs.member, id=new_id()),
        invitation=replace(theirs.invitation, id=new_id()),
    )


def _without_request(answer: Any) -> tuple[Any, ...]:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", answer.content.decode())
    headers = {name: value for name, value in answer.headers.items() if name != "X-Request-Id"}
    return answer.status_code, text, headers


def _everything_of(one: Furnished) -> list[Any]:
    wanted = "where tenant_id = %s order by 1"
    return [rows(f"select md5(t::text) from {table} t {wanted}", one.tenant.id) for table in TABLES]
