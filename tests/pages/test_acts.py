"""Keys, members, limits and the audit: what people change on their pages goes through the verbs and is audited."""

import re
from typing import Any

import pytest

from tenants.keys import create_api_key
from tenants.principals import Principal
from tests.api.callers import Caller, assert_problem
from tests.builders import build_tenant, rows, start
from tests.pages.ground import furnish, visitor
from tests.people.signing import build_person, join

KEY = re.compile(r"<code data-copy-text>([A-Za-z0-9]{8}\.[A-Za-z0-9]{40})</code>")


def shown(client: Any, address: str) -> str:
    return " ".join(client.get(address).content.decode().split())


def test_a_key_is_shown_once_opens_the_api_and_is_revoked() -> None:
    tenant = build_tenant()
    client = visitor(tenant, "admin", "pat@example.com")
    made = client.post("/app/keys/", {"name": "ci", "scopes": ["tasks:read", "tasks:write"], "expires": "90"})
    found = KEY.search(made.content.decode())
    assert found
    assert "no-store" in made["Cache-Control"]
    caller = Caller(tenant, found[1])
    assert caller.start().status_code == 201
    page = shown(client, "/app/keys/")
    assert (found[1] in page, found[1].partition(".")[0] in page) == (False, True)
    assert found[1].partition(".")[2] not in str(rows("select s::text from django_session s"))
    [(key_id, expires)] = rows("select id, expires_at - created_at from tenants_apikey")
    assert expires.days in (89, 90)
    client.post(f"/app/keys/{key_id}/revoke/", {"reason": "left"})
    assert_problem(caller.get(), 401, "unauthenticated")
    acts = rows("select act, reason, principal ->> 'name' from tenants_act where target_kind = 'key' order by at")
    assert acts == [("key.create", "", "pat@example.com"), ("key.revoke", "left", "pat@example.com")]


@pytest.mark.parametrize(
    "form",
    [
        {"name": "two words", "scopes": ["tasks:read"], "expires": "90"},
        {"name": "", "scopes": ["tasks:read"], "expires": "90"},
        {"name": "x" * 200, "scopes": ["tasks:read"], "expires": "90"},
        {"name": "ok", "scopes": [], "expires": "90"},
        {"name": "ok", "scopes": ["everything"], "expires": "90"},
        {"name": "ok", "scopes": ["tasks:read"], "expires": "91"},
        {"name": "ok\x00", "scopes": ["tasks:read"], "expires": ""},
    ],
)
def test_a_key_that_can_not_be_is_refused_on_the_form(form: dict[str, Any]) -> None:
    answer = visitor(build_tenant(), "owner").post("/app/keys/", form)
    assert answer.status_code == 400
    assert 'class="errorlist' in answer.content.decode()
    assert rows("select count(*) from tenants_apikey") == [(0,)]


def test_a_member_page_invites_changes_and_removes() -> None:
    tenant = build_tenant()
    client = visitor(tenant, "owner", "boss@example.com")
    member, maker = join(tenant, "admin", build_person("pat@example.com"))
    client.post(f"/app/members/{member.id}/role/", {"role": "operator"})
    assert rows("select role from tenants_member where id = %s", member.id) == [("operator",)]
    client.post(f"/app/members/{member.id}/role/", {"role": "king"})
    assert "A role is one of" in shown(client, "/app/members/")
    assert rows("select role from tenants_member where id = %s", member.id) == [("operator",)]
    client.post(f"/app/members/{member.id}/remove/", {"reason": "left"})
    assert rows("select email from tenants_member") == [("boss@example.com",)]
    acts = rows("select act, reason, principal ->> 'name' from tenants_act where target_kind = 'member' order by at")
    assert acts == [
        ("member.change_role", "", "boss@example.com"),
        ("member.remove", "left", "boss@example.com"),
    ]
    assert maker.id == str(member.person_id)


def test_removing_says_first_how_many_keys_go_with_the_member() -> None:
    tenant = build_tenant()
    client = visitor(tenant, "owner")
    member, maker = join(tenant, "admin")
    first, _ = create_api_key(tenant_id=tenant.id, name="a", scopes=["keys:write", "tasks:read"], principal=maker)
    by_key = Principal(kind="key", id=str(first.id), scopes=frozenset(first.scopes), behind=maker.name)
    create_api_key(tenant_id=tenant.id, name="b", scopes=["tasks:read"], principal=by_key)
    assert "This also revokes 2 keys" in shown(client, f"/app/members/{member.id}/remove/")
    client.post(f"/app/members/{member.id}/remove/")
    assert "Keys revoked with the member: 2." in shown(client, "/app/members/")
    assert rows("select count(*) from tenants_apikey where revoked_at is null") == [(0,)]


def test_an_admin_makes_and_unmakes_no_owner_and_the_last_owner_stays() -> None:
    tenant = build_tenant()
    owner_client = visitor(tenant, "owner", "boss@example.com")
    admin = visitor(tenant, "admin", "pat@example.com")
    [(boss,), (pat,)] = rows("select id from tenants_member order by role desc")
    before = rows("select * from tenants_member order by id")
    page = admin.get("/app/members/").content.decode()
    assert f"/app/members/{boss}/" not in page
    assert "<option>owner</option>" not in page
    admin.post(f"/app/members/{boss}/role/", {"role": "viewer"})
    admin.post(f"/app/members/{boss}/remove/")
    admin.post(f"/app/members/{pat}/role/", {"role": "owner"})
    assert admin.post("/app/members/", {"email": "x@example.com", "role": "owner"}).status_code == 400
    owner_client.post(f"/app/members/{boss}/role/", {"role": "viewer"})
    owner_client.post(f"/app/members/{boss}/remove/")
    assert "at least one owner" in shown(owner_client, "/app/members/")
    assert rows("select * from tenants_member order by id") == before
    assert rows("select count(*) from tenants_invitation") == [(0,)]


def test_own_limits_only_tighten_and_are_decided_on_what_was_seen() -> None:
    tenant = build_tenant(max_outstanding=1000, max_leases=20)
    client = visitor(tenant, "admin", "pat@example.com")
    [(version,)] = rows("select version from tenants_policy where tenant_id = %s", tenant.id)
    form = {"own_max_outstanding": "500", "own_max_leases": "", "reason": "budget", "version": version}
    assert client.post("/app/usage/", form).status_code == 302
    page = shown(client, "/app/usage/")
    assert '<td class="num">1,000</td><td class="num">500</td><td class="num">500</td>' in page
    assert '<td class="num">20</td><td class="num">–</td><td class="num">20</td>' in page
    stale = client.post("/app/usage/", form)
    assert stale.status_code == 412
    assert "has changed since it was read" in stale.content.decode()
    for wrong in ("1001", "0", "-1", "x", "1" * 30):
        answer = client.post("/app/usage/", {**form, "own_max_outstanding": wrong, "version": version + 1})
        assert answer.status_code == 400, wrong
    known = rows("select own_max_outstanding, own_max_leases from tenants_policy where tenant_id = %s", tenant.id)
    assert known == [(500, None)]
    acts = rows("select reason, principal ->> 'name' from tenants_act where act = 'policy.tighten'")
    assert acts == [("budget", "pat@example.com")]


def test_use_near_and_at_a_limit_is_told_in_words() -> None:
    tenant = build_tenant(max_outstanding=10)
    client = visitor(tenant, "viewer")
    start(tenant, 8)
    assert "near the limit" in shown(client, "/app/")
    start(tenant, 2)
    assert "at the limit" in shown(client, "/app/")
    assert "100 percent of the limit" in shown(client, "/app/usage/")


def test_the_audit_shows_acts_with_their_filter_and_pages() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "auditor")
    page = shown(client, "/app/audit/")
    assert all(text in page for text in ("task.cancel", "reason-alpha", "owner-alpha@example.com", "key.create"))
    only = shown(client, "/app/audit/?act=task.cancel")
    assert ("reason-alpha" in only, "key.create" in only) == (True, False)
    assert "name-alpha" in shown(client, f"/app/audit/?target={furnished.key.id}")
    assert "No act fits this" in shown(client, "/app/audit/?since=2090-01-01")
    assert "task.cancel" in shown(client, "/app/audit/?since=2020-01-01&until=9999-12-31")
    for query in ("since=x", "act=%00", "target=a%20b", "before=x", "since=99999-01-01"):
        assert client.get(f"/app/audit/?{query}").status_code == 400, query


def test_a_tenant_without_a_policy_is_told() -> None:
    tenant = build_tenant(policy=False)
    client = visitor(tenant, "owner")
    for address in ("/app/", "/app/usage/"):
        assert "The operator has set no policy" in shown(client, address)
