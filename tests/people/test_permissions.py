"""One table of permission × role × key scope: what it says, what the docs say, and what every route does."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.authentication import authenticate, find_membership, list_memberships
from tenants.errors import Forbidden
from tenants.identity import SYSTEM_TENANT_ID, new_id
from tenants.invitations import find_invitation, invite
from tenants.keys import create_api_key
from tenants.permissions import SCOPES, TABLE, Permission, Role, of_role, of_scopes, scopes_within
from tenants.principals import Principal
from tests.api.callers import assert_problem, build_caller, written
from tests.architecture.test_docs import PAGES, codes, rows_of
from tests.builders import PRINCIPAL, build_key, build_tenant, rows
from tests.database import owner
from tests.people.signing import build_person, join

PAGE = "docs/permissions.md"


def test_every_permission_stands_in_the_table_once_with_known_roles_and_scope() -> None:
    assert set(TABLE) == set(Permission)
    for permission, (roles, scope) in TABLE.items():
        assert roles <= frozenset(Role), permission
        assert scope in SCOPES | {""}, permission
        assert roles or scope, "nobody could ever do it"
    assert {scope for _, scope in TABLE.values()} - {""} == SCOPES, "a scope that gives nothing"


def test_the_docs_show_the_table_as_it_is() -> None:
    shown = {}
    for name, _, *cells, scope in rows_of(PAGE, "## The table"):
        roles = frozenset(role for role, cell in zip(Role, cells, strict=True) if cell == "yes")
        assert set(cells) <= {"yes", ""}
        shown[codes(name)[0]] = (roles, "" if scope == "none" else codes(scope)[0])
    assert shown == {permission.value: entry for permission, entry in TABLE.items()}
    head = re.search(r"^\| permission \|.*$", _text(), re.MULTILINE)
    assert head
    assert [cell.strip() for cell in head[0].split("|")][3:-2] == [role.value for role in Role]


def _text() -> str:
    return PAGES[PAGE]


def test_roles_nest_as_their_names_promise() -> None:
    """A mistake in the table would most likely give a lower role something that a higher one lacks."""
    owner, admin, operator, viewer, auditor = map(of_role, Role)
    assert viewer < operator < admin < owner
    assert viewer < auditor < admin
    assert owner - admin == {Permission.OWNERS_WRITE}
    assert set(Permission) - owner == {Permission.WORK_CLAIM}


def test_unknown_roles_scopes_and_kinds_may_nothing() -> None:
    assert of_role("") == of_role("root") == of_role("OWNER") == frozenset()
    assert of_scopes(frozenset({"", "*", "admin", "tasks:*"})) == frozenset()
    nobody = Principal(kind="person", id="x", scopes=SCOPES)
    assert nobody.permissions == frozenset(), "a person's scopes are nothing"
    assert Principal(kind="key", id="x", role="owner").permissions == frozenset(), "a key's role is nothing"


@pytest.mark.parametrize("role", [*Role])
def test_a_person_gives_a_key_exactly_what_lies_within_its_role(role: Role) -> None:
    tenant = build_tenant()
    _, principal = join(tenant, role)
    given = set()
    for scope in sorted(SCOPES):
        try:
            create_api_key(tenant_id=tenant.id, name="k", scopes=[scope], principal=principal)
            given.add(scope)
        except Forbidden as error:
            assert error.fields == {"scope": scope}
    assert given == scopes_within(of_role(role))
    for scope in given - {"worker"}:
        assert of_scopes(frozenset({scope})) <= of_role(role)
    assert ("worker" in given) == (Permission.KEYS_WRITE in of_role(role))
    assert len(rows("select 1 from tenants_apikey")) == len(given)


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_a_key_gives_a_key_exactly_what_it_has_itself(scope: str) -> None:
    tenant = build_tenant()
    view, _ = create_api_key(tenant_id=tenant.id, name="parent", scopes=[scope, "keys:write"], principal=PRINCIPAL)
    parent = Principal(kind="key", id=str(view.id), scopes=frozenset(view.scopes))
    for wanted in sorted(SCOPES):
        if wanted in view.scopes:
            create_api_key(tenant_id=tenant.id, name="child", scopes=[wanted], principal=parent)
        else:
            with pytest.raises(Forbidden):
                create_api_key(tenant_id=tenant.id, name="child", scopes=[wanted, scope], principal=parent)


def routes() -> Iterator[tuple[str, Any]]:
    """Walk every route of the API, with an id in each of its places."""

    def walk(patterns: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            path = prefix + re.sub(r"<[^>]+>", str(new_id()), str(pattern.pattern))
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, path)
            elif isinstance(pattern, URLPattern) and hasattr(pattern.callback, "cls"):
                yield path, pattern.callback.cls

    yield from walk(get_resolver("ductor.urls").url_patterns, "/")


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_every_route_and_method_opens_for_the_scope_of_its_permission_and_no_other(scope: str) -> None:
    """A new route is in this matrix by itself: it is found by its address, and judged by the table."""
    caller = build_caller(scope)
    seen: set[str] = set()
    for path, view in routes():
        for method, permission in view.permissions.items():
            allowed = permission is None or TABLE[permission][1] == scope
            before = written()
            answer = caller.get(path) if method == "GET" else caller.post(path, {"unknown": 1}, method=method)
            if allowed:
                assert answer.status_code not in (401, 403), (method, path)
            else:
                document = assert_problem(answer, 403, "forbidden")
                assert document["scope"] == TABLE[permission][1], (method, path)
                assert written() == before
            seen.add(f"{method} {permission}")
    assert len(seen) >= 8


def test_the_person_behind_a_key_is_known_and_kept_with_each_act() -> None:
    tenant = build_tenant()
    member, person = join(tenant, "admin")
    view, plaintext = create_api_key(
        tenant_id=tenant.id, name="ci", scopes=["tasks:write", "keys:write"], principal=person
    )
    by_key = _authenticated(plaintext)
    assert (by_key.kind, by_key.id, by_key.behind) == ("key", str(view.id), member.email)
    _, child = create_api_key(tenant_id=tenant.id, name="child", scopes=["tasks:write"], principal=by_key)
    assert _authenticated(child).behind == member.email, "also behind a key that a key has made"
    [(made,)] = rows("select principal from tenants_act where act = 'key.create' and target_id <> %s", str(view.id))
    assert made == {"kind": "key", "id": str(view.id), "name": "ci", "behind": member.email}


def _authenticated(plaintext: str) -> Principal:
    found = authenticate(plaintext, host="localhost")
    assert found is not None
    return found.principal


def test_a_key_gives_for_no_longer_than_it_has() -> None:
    tenant = build_tenant()
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    view, _ = create_api_key(
        tenant_id=tenant.id, name="parent", scopes=["keys:write"], expires_at=end, principal=PRINCIPAL
    )
    parent = Principal(kind="key", id=str(view.id), scopes=frozenset(view.scopes))

    def make(expires_at: datetime | None) -> datetime | None:
        child, _ = create_api_key(
            tenant_id=tenant.id, name="child", scopes=["keys:write"], expires_at=expires_at, principal=parent
        )
        return child.expires_at

    assert make(None) == make(end) == end
    assert make(end - timedelta(minutes=1)) == end - timedelta(minutes=1)
    before = rows("select count(*) from tenants_apikey")
    with pytest.raises(Forbidden):
        make(end + timedelta(seconds=1))
    assert rows("select count(*) from tenants_apikey") == before


def test_nobody_acts_as_the_system_whatever_rows_were_planted() -> None:
    """As whoever can run any SQL as the tenant surface's role could plant them (D11)."""
    tenant = build_tenant()
    person = build_person()
    plaintext = build_key(tenant)
    join(tenant, "owner", person)
    _, token = invite(tenant_id=tenant.id, email="a@example.com", role="owner", principal=PRINCIPAL)
    assert list_memberships(person_id=person.pk) != []
    for table in ("tenants_apikey", "tenants_member", "tenants_invitation"):
        owner().execute("alter table tenants_apikey disable trigger kept_rows")
        owner().execute(f"update {table} set tenant_id = %s", (SYSTEM_TENANT_ID,))
    owner().execute("alter table tenants_apikey enable trigger kept_rows")
    assert authenticate(plaintext, host="localhost") is None
    asked = {"person_id": person.pk, "email": person.email, "host": "localhost"}
    assert find_membership(tenant_id=SYSTEM_TENANT_ID, **asked) is None
    assert list_memberships(person_id=person.pk) == []
    assert find_invitation(token=token) is None
