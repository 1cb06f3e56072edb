"""S18, B11: every page of the console that an operator can reach, with two tenants in the house."""

import re
from uuid import uuid4

import pytest

from ductor.console.urls import pages
from tests.admin.ground import Furnished, furnish, open_door
from tests.surfaces import Answer, Visitor, operator_surface

# Pages over all tenants: they name each tenant, and nothing that is its own.
PLATFORM = ("/admin/", "/admin/tenants/", "/admin/policies/")
OWN = ("tasks", "members", "keys", "audit")
WIDER = "script-src 'self' 'unsafe-eval'"


def crawl(visitor: Visitor, first: str) -> dict[str, Answer]:
    """Follow every link below /admin/ from a page on; returns path → answer."""
    found: dict[str, Answer] = {}
    todo = [first]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        answer = found[path] = visitor.get(path)
        if answer.status == 200:
            todo += [
                link.replace("&amp;", "&") for link in re.findall(r'(?:href|data-live)="(/admin/[^"#]*)"', answer.text)
            ]
    return found


@pytest.fixture
def house() -> tuple[Furnished, Furnished]:
    return furnish("alpha"), furnish("beta")


def test_s18_b11_pages_of_one_tenant_show_nothing_of_another(house: tuple[Furnished, Furnished]) -> None:
    alpha, beta = house
    visitor = operator_surface().operator()
    open_door(visitor, "alpha")
    found = crawl(visitor, "/admin/")
    for path, answer in found.items():
        assert beta.mark not in answer.text, path
        assert str(beta.tenant.id) not in answer.text or path.startswith(beta.path), path
        if not path.startswith(("/admin/t/beta/", *PLATFORM[1:])) and path != PLATFORM[0]:
            assert "beta" not in answer.text, path
    own = [path for path in found if path.startswith(alpha.path)]
    assert any(alpha.mark in found[path].text for path in own)
    shut = {path: answer.location for path, answer in found.items() if answer.status == 302}
    behind_doors = [f"/admin/t/{slug}/{page}/" for slug in ("beta", "system") for page in OWN]
    assert shut == {path: f"{path.rsplit('/', 2)[0]}/open/?next={path}" for path in behind_doors}


def test_the_crawl_reaches_every_page_and_each_takes_at_most_fifteen_statements(
    house: tuple[Furnished, Furnished],
) -> None:
    visitor = operator_surface().operator()
    for slug in ("alpha", "beta"):
        open_door(visitor, slug)
    found = {**crawl(visitor, "/admin/"), "/admin/t/beta/open/": visitor.get("/admin/t/beta/open/")}
    reached = {pattern for pattern, _, _ in pages() if any(_fits(pattern, path) for path in found)}
    assert reached == {pattern for pattern, _, _ in pages()}
    odd = {path: answer.status for path, answer in found.items() if answer.status != 200}
    assert odd == {f"/admin/t/system/{page}/": 302 for page in OWN}
    assert {path: len(answer.queries) for path, answer in found.items() if len(answer.queries) > 15} == {}
    for path, answer in found.items():
        if answer.status == 302:
            continue
        assert WIDER in answer.headers["content-security-policy"], path
        assert "no-store" in answer.headers["cache-control"], path
        counted = [query for query in answer.queries if "count(" in query.lower()]
        assert not any(table in query for query in counted for table in ("workflows_", "tenants_act")), path


def _fits(pattern: str, path: str) -> bool:
    route = "/admin/" + re.sub(r"<\w+:\w+>", "[^/]+", pattern)
    return re.fullmatch(route, path.partition("?")[0]) is not None


@pytest.mark.parametrize("page", ["tasks/{task_id}/", "tasks/{task_id}/steps/ship/1/", "tasks/{waiting_id}/cancel/"])
def test_another_tenant_s_id_below_an_open_tenant_is_answered_like_one_that_never_existed(
    house: tuple[Furnished, Furnished], page: str
) -> None:
    alpha, beta = house
    visitor = operator_surface().operator()
    open_door(visitor, "alpha")
    foreign = {"task_id": beta.task_id, "waiting_id": beta.waiting_id}
    seen = []
    for ids in (foreign, {name: uuid4() for name in foreign}, dict.fromkeys(foreign, "no-id")):
        answer = visitor.get(alpha.path + page.format(**ids))
        assert answer.status == 404
        seen.append(answer.text.replace(answer.headers["x-request-id"], "<id>"))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("item", ["members/{member_id}/remove/", "keys/{key_id}/revoke/", "tasks/{waiting_id}/cancel/"])
def test_posting_another_tenant_s_id_is_refused_as_unknown(house: tuple[Furnished, Furnished], item: str) -> None:
    alpha, beta = house
    visitor = operator_surface().operator()
    open_door(visitor, "alpha")
    ids = {"member_id": beta.member_id, "key_id": beta.key_id, "waiting_id": beta.waiting_id}
    answer = visitor.post(alpha.path + item.format(**ids), {"reason": "because"})
    assert answer.status == 404
    assert operator_surface().call("tests.admin.looks.standing_of", slug="beta") == ["waiting", None, 1]


def test_nothing_of_django_s_generic_admin_is_there() -> None:
    visitor = operator_surface().operator()
    for path in (
        "autocomplete/",
        "jsi18n/",
        "r/1/1/",
        "login/",
        "password_change/",
        "tenants/tenant/",
        "auth/",
        "doc/",
    ):
        assert visitor.get(f"/admin/{path}").status == 404, path


def test_the_palette_finds_tenants_by_slug(house: tuple[Furnished, Furnished]) -> None:
    answer = operator_surface().operator().get("/admin/search/?extended=1&s=ALPH")
    assert answer.status == 200
    assert "/admin/t/alpha/" in answer.text
    assert "beta" not in answer.text
