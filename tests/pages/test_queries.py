"""No page takes more than 15 statements, however much there is to show, and none counts a history (C83)."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.builders import build_tenant, claim, complete, start
from tests.pages.ground import addresses, furnish, visitor
from tests.people.signing import browser, build_person, join, sign_in

MOST = 15


def statements(client: object, address: str, **headers: str) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        client.get(address, headers=headers)  # type: ignore[attr-defined]
    return [query["sql"] for query in queries.captured_queries]


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_every_page_takes_at_most_15_statements(headers: dict[str, str]) -> None:
    furnished = furnish("alpha")
    start(furnished.tenant, 200)
    complete(claim(limit=10))
    for _ in range(5):
        join(furnished.tenant, "viewer")
    client = visitor(furnished.tenant, "owner")
    taken = {address: statements(client, address, **headers) for address in addresses(furnished).values()}
    assert {address: len(found) for address, found in taken.items() if len(found) > MOST} == {}
    counting = [sql for found in taken.values() for sql in found if "count(" in sql.lower() and "apikey" not in sql]
    assert counting == []


def test_choosing_and_joining_take_as_few() -> None:
    person = build_person()
    for _ in range(20):
        join(build_tenant(), "viewer", person)
    client = sign_in(person)
    assert 0 < len(statements(client, "/app/choose/")) <= MOST
    assert len(statements(browser(), "/accounts/login/")) <= MOST
