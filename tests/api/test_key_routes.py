"""`/keys`: made with no more than the maker has, shown once, listed without secrets, revoked at once."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.callers import Caller, assert_problem, build_caller, comparable, written
from tests.builders import rows

KEYS = "/api/v1/keys"


def build_admin(*scopes: str) -> Caller:
    return build_caller("keys:write", "tasks:read", "tasks:write", *scopes)


def make(caller: Caller, **members: Any) -> Any:
    return caller.post(KEYS, {"name": "ci", "scopes": ["tasks:read"], **members})


def stored() -> list[Any]:
    return [*written(), rows("select * from tenants_apikey order by id")]


def test_a_key_is_made_shown_once_and_opens_what_it_says() -> None:
    caller = build_admin()
    later = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    answer = make(caller, expires_at=later)
    assert answer.status_code == 201
    document = answer.json()
    key = document.pop("key")
    assert key.startswith(document["prefix"] + ".")
    assert (document["name"], document["scopes"], document["revoked_at"]) == ("ci", ["tasks:read"], None)
    assert document["expires_at"] == later.replace("+00:00", "Z")
    made = Caller(caller.tenant, key)
    assert made.get().status_code == 200
    assert_problem(made.start(), 403, "forbidden")
    listed = caller.get(KEYS)
    assert document in listed.json()["data"]
    assert key.partition(".")[2] not in listed.content.decode()
    [act] = rows(
        "select act, target_id, principal ->> 'kind', after from tenants_act"
        " where act = 'key.create' and target_id = %s",
        document["id"],
    )
    assert act[:3] == ("key.create", document["id"], "key")
    assert act[3] == {"name": "ci", "prefix": document["prefix"], "scopes": ["tasks:read"]}


@pytest.mark.parametrize("scope", ["policy:write", "audit:read", "signals:write", "budget:read"])
def test_a_key_gives_no_more_than_its_maker_has(scope: str) -> None:
    caller = build_admin()
    before = stored()
    document = assert_problem(make(caller, scopes=["tasks:read", scope]), 403, "forbidden")
    assert document["scope"] == scope
    assert stored() == before
    assert make(build_admin(scope), scopes=["tasks:read", scope]).status_code == 201


def test_a_made_key_makes_no_key_beyond_itself() -> None:
    caller = build_admin()
    middle = Caller(caller.tenant, make(caller, scopes=["keys:write"]).json()["key"])
    before = stored()
    assert_problem(make(middle, scopes=["tasks:write"]), 403, "forbidden")
    assert stored() == before
    assert make(middle, scopes=["keys:write"]).status_code == 201


@pytest.mark.parametrize(
    "members",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x" * 129},
        {"name": 1},
        {"scopes": []},
        {"scopes": "tasks:read"},
        {"scopes": ["tasks:read", "tasks:read"]},
        {"scopes": ["everything"]},
        {"scopes": [1]},
        {"expires_at": "tomorrow"},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "9999-01-01T00:00:00Z"},
        {"expires_at": "0001-01-01T00:00:00+14:00"},
        {"expires_at": 1},
        {"key": "abcdefgh.mine"},
        {"prefix": "abcdefgh"},
        {"hashed_key": "x"},
        {"created_by": {"kind": "person"}},
        {"tenant_id": "x"},
        {"revoked_at": None},
    ],
)
def test_a_request_that_is_not_lawful_makes_nothing(members: dict[str, Any]) -> None:
    caller = build_admin()
    before = stored()
    assert_problem(make(caller, **members), 400, "invalid_request")
    assert stored() == before


def test_a_key_is_revoked_once_and_shown_each_time() -> None:
    caller = build_admin()
    made = make(caller).json()
    revoke = f"{KEYS}/{made['id']}/revoke"
    first = caller.post(revoke, {"reason": "lost"})
    assert first.status_code == 200
    assert first.json()["revoked_at"] is not None
    assert_problem(Caller(caller.tenant, made["key"]).get(), 401, "unauthenticated")
    before = stored()
    assert caller.post(revoke, {}).json() == first.json()
    assert stored() == before
    assert rows("select reason from tenants_act where act = 'key.revoke'") == [("lost",)]


def test_another_tenant_s_key_is_no_key() -> None:
    mine, theirs = build_admin(), build_admin()
    foreign = make(theirs).json()
    before = stored()
    asked = [comparable(mine.post(f"{KEYS}/{key_id}/revoke", {})) for key_id in (foreign["id"], mine.tenant.id, "x")]
    assert asked[0][0] == 404
    assert asked == [asked[0]] * 3
    assert stored() == before
    assert foreign["id"] not in mine.get(KEYS).content.decode()


def test_pages_show_every_key_once() -> None:
    caller = build_admin()
    for number in range(5):
        make(caller, name=f"k{number}")
    seen: list[str] = []
    query = "?limit=2"
    while query:
        page = caller.get(KEYS + query).json()
        seen += [key["id"] for key in page["data"]]
        query = f"?limit=2&cursor={page['next_cursor']}" if page["has_more"] else ""
    assert len(seen) == len(set(seen)) == 6
    assert seen == sorted(seen, reverse=True)


def test_the_header_for_repeating_is_refused() -> None:
    caller = build_admin()
    before = stored()
    answer = caller.post(KEYS, {"name": "ci", "scopes": ["tasks:read"]}, Idempotency_Key="k-1")
    assert_problem(answer, 400, "invalid_request")
    assert stored() == before


def test_without_the_scope_nothing_is_listed_made_or_revoked() -> None:
    caller = build_caller()
    before = stored()
    for answer in (caller.get(KEYS), make(caller), caller.post(f"{KEYS}/x/revoke", {})):
        assert assert_problem(answer, 403, "forbidden")["scope"] == "keys:write"
    assert stored() == before
