"""What is taken away is gone at the next request, and a session is one tenant's (S11, S12, B03)."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client, override_settings

from ductor.logging import json_formatter
from tenants.members import change_role, list_members, remove_member
from tenants.principals import Principal
from tenants.queries import TenantView
from tests.api.callers import Caller
from tests.builders import PRINCIPAL, build_key, build_tenant, rows, start
from tests.database import owner
from tests.people.signing import build_person, choose, join, sign_in

HOME = "/app/"
CHOOSE = "/app/choose/"


def member_of(*tenants: TenantView, role: str = "admin") -> tuple[Client, list[Any]]:
    """Return the browser of a person who is a member of these tenants and acts for the first."""
    person = build_person()
    members = [join(tenant, role, person)[0] for tenant in tenants]
    client = sign_in(person)
    client.post(CHOOSE, {"tenant": str(tenants[0].id)})
    return client, members


def acting_for(client: Client) -> str:
    """Return the slug of the tenant that the browser's session acts for, or where it is sent instead."""
    answer = client.get(HOME)
    return str(answer.wsgi_request.authenticated.slug) if answer.status_code == 200 else answer.headers["Location"]


def give_domain(tenant: TenantView, host: str) -> None:
    owner().execute(
        "insert into tenants_domain (id, domain, is_primary, tenant_id) values (gen_random_uuid(), %s, true, %s)",
        (host, tenant.id),
    )


@contextmanager
def logged() -> Iterator[list[dict[str, Any]]]:
    """Collect the lines of the log."""
    stream, lines = io.StringIO(), []
    handler = logging.StreamHandler(stream)
    handler.setFormatter(json_formatter("web"))
    logging.getLogger().addHandler(handler)
    try:
        yield lines
    finally:
        logging.getLogger().removeHandler(handler)
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]


def test_s11_a_session_acts_for_the_tenant_it_chose_and_for_no_other() -> None:
    a, b, foreign = build_tenant("aaa"), build_tenant("bbb"), build_tenant("ccc")
    client, _ = member_of(a, b)
    assert acting_for(client) == "aaa"
    before = client.cookies["ductor_session"].value
    assert client.post(CHOOSE, {"tenant": str(b.id)}).status_code == 302
    assert acting_for(client) == "bbb"
    assert client.cookies["ductor_session"].value != before
    for given in (str(foreign.id), foreign.slug, "", "x" * 40, "00000000-0000-7000-8000-000000000000"):
        assert client.post(CHOOSE, {"tenant": given}).status_code == 404, given
        assert acting_for(client) == "bbb"


def test_s11_what_stands_in_the_session_is_a_wish_that_is_checked_each_time() -> None:
    mine, foreign = build_tenant("mine"), build_tenant("foreign")
    client, _ = member_of(mine)
    choose(client, foreign.id)
    assert acting_for(client).startswith(CHOOSE)
    session = client.session
    session["ductor_tenant"] = {"not": "an id"}
    session.save()
    assert acting_for(client).startswith(CHOOSE)


def test_s11_a_removed_member_is_out_at_the_next_request_and_lands_in_no_other_tenant() -> None:
    a, b = build_tenant("aaa"), build_tenant("bbb")
    join(a, "owner")
    client, (in_a, _) = member_of(a, b)
    assert acting_for(client) == "aaa"
    remove_member(tenant_id=a.id, member_id=in_a.id, principal=PRINCIPAL)
    assert acting_for(client).startswith(CHOOSE)
    assert client.post("/app/members/", {"email": "x@example.com", "role": "viewer"}).headers["Location"] == CHOOSE
    assert rows("select count(*) from tenants_invitation") == [(0,)]
    assert client.post(CHOOSE, {"tenant": str(a.id)}).status_code == 404


def test_a_changed_role_is_in_force_at_the_next_request() -> None:
    tenant = build_tenant()
    client, (member,) = member_of(tenant)
    assert client.get("/app/keys/").status_code == 200
    change_role(tenant_id=tenant.id, member_id=member.id, role="viewer", principal=PRINCIPAL)
    assert client.get("/app/keys/").status_code == 403
    assert client.post("/app/keys/", {"name": "x", "scopes": "tasks:read"}).status_code == 403
    assert rows("select count(*) from tenants_apikey") == [(0,)]
    change_role(tenant_id=tenant.id, member_id=member.id, role="admin", principal=PRINCIPAL)
    assert client.get("/app/keys/").status_code == 200


@pytest.mark.parametrize("status", ["suspended", "closing"])
def test_a_tenant_that_may_not_act_is_nobody_s_at_the_next_request(status: str) -> None:
    tenant = build_tenant()
    client, _ = member_of(tenant)
    assert acting_for(client) == tenant.slug
    owner().execute("update tenants_tenant set status = %s where id = %s", (status, tenant.id))
    assert acting_for(client).startswith(CHOOSE)
    assert tenant.slug not in client.get(CHOOSE).content.decode()
    owner().execute("update tenants_tenant set status = 'active' where id = %s", (tenant.id,))
    assert acting_for(client) == tenant.slug


@override_settings(ALLOWED_HOSTS=["localhost", "a.example", "b.example"])
def test_s12_b03_a_session_of_a_on_b_s_host_is_not_found_and_leaves_a_line() -> None:
    a, b = build_tenant("aaa", service_class="premium"), build_tenant("bbb")
    give_domain(a, "a.example")
    give_domain(b, "b.example")
    start(a, workflow="marker-of-a")
    start(b, workflow="marker-of-b")
    client, _ = member_of(a)
    for path in (HOME, "/app/tasks/", "/app/keys/", "/app/members/", "/app/audit/", "/app/usage/"):
        with logged() as lines:
            answer = client.get(path, SERVER_NAME="b.example")
        assert answer.status_code == 404, path
        assert b"marker-of" not in answer.content
        [line] = [line for line in lines if line["event"] == "credential_on_foreign_domain"]
        assert (line["kind"], line["service_class"]) == ("person", "premium")
    assert client.post(CHOOSE, {"tenant": str(a.id)}, SERVER_NAME="b.example").status_code == 404
    assert client.get(HOME, SERVER_NAME="a.example").status_code == 200


@override_settings(ALLOWED_HOSTS=["localhost", "a.example", "b.example"])
def test_s12_a_member_of_both_acts_for_b_on_b_s_host_only_by_choosing_it() -> None:
    a, b = build_tenant("aaa"), build_tenant("bbb")
    give_domain(b, "b.example")
    client, _ = member_of(a, b)
    assert client.get(HOME, SERVER_NAME="b.example").status_code == 404
    client.post(CHOOSE, {"tenant": str(b.id)}, SERVER_NAME="b.example")
    assert client.get(HOME, SERVER_NAME="b.example").wsgi_request.authenticated.slug == "bbb"


def test_the_api_knows_no_session_and_the_pages_no_key() -> None:
    tenant = build_tenant()
    client, _ = member_of(tenant)
    assert client.get("/api/v1/tasks").status_code == 401
    key = build_key(tenant, "tasks:read", "keys:write")
    assert Caller(tenant, key).get(HOME).headers["Location"].startswith("/accounts/login/")


def test_a_principal_of_a_page_is_the_person_in_its_role_of_that_tenant() -> None:
    a, b = build_tenant("aaa"), build_tenant("bbb")
    person = build_person()
    join(a, "auditor", person)
    join(b, "owner", person)
    client = sign_in(person)
    seen = {}
    for tenant in (a, b):
        client.post(CHOOSE, {"tenant": str(tenant.id)})
        principal: Principal = client.get(HOME).wsgi_request.authenticated.principal
        assert (principal.kind, principal.id, principal.name) == ("person", str(person.pk), person.email)
        assert principal.request_id
        seen[tenant.slug] = principal.role
    assert seen == {"aaa": "auditor", "bbb": "owner"}
    assert len(list_members(tenant_id=a.id)) == 1
