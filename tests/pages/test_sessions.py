"""Who may look at pages at all: sign-in, choosing a tenant, and what changes under an open session (D3)."""

from typing import Any

import pytest

from tenants.members import change_role, remove_member
from tests.builders import build_tenant, rows
from tests.database import owner
from tests.pages.ground import addresses, furnish, visitor
from tests.people.signing import PASSWORD, browser, build_person, join, sign_in


def test_somebody_who_has_not_signed_in_is_sent_to_sign_in_and_back() -> None:
    furnished = furnish("alpha")
    for address in addresses(furnished).values():
        answer = browser().get(address)
        assert (answer.status_code, answer["Location"]) == (302, f"/accounts/login/?next={address}")
        assert browser().post(address).status_code == 302
    assert browser().get("/")["Location"] == "/app/"


def test_a_poll_is_told_to_leave_the_page_instead_of_swapping_a_login_form_in() -> None:
    answer = browser().get("/app/tasks/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["HX-Redirect"] == "/accounts/login/?next=/app/tasks/"
    for current, back in (("http://localhost/app/keys/", "/app/keys/"), ("https://evil.example/x", "/app/tasks/")):
        headers = {"HX-Request": "true", "HX-Current-URL": current}
        answer = browser().get("/app/tasks/", headers=headers)
        assert answer["HX-Redirect"] == f"/accounts/login/?next={back}"


def test_signing_in_leads_through_the_only_tenant_to_the_page_that_was_asked_for() -> None:
    tenant, person = build_tenant("acme"), build_person()
    join(tenant, "viewer", person)
    client = browser()
    asked = "/app/tasks/?state=failed"
    login = client.get(asked)["Location"]
    back = client.post(login, {"login": person.email, "password": PASSWORD})
    assert back["Location"] == asked
    chosen = client.get(asked)
    assert chosen["Location"].startswith("/app/choose/?next=%2Fapp%2Ftasks%2F")
    assert client.get(chosen["Location"])["Location"] == asked
    assert client.get(asked).status_code == 200


def test_with_two_tenants_one_is_chosen_by_form_and_the_session_changes_its_key() -> None:
    one, two, person = build_tenant("acme"), build_tenant("globex"), build_person()
    join(one, "owner", person)
    join(two, "viewer", person)
    client = sign_in(person)
    page = client.get("/app/")
    assert page["Location"].startswith("/app/choose/")
    shown = client.get("/app/choose/").content.decode()
    assert ("acme" in shown, "globex" in shown) == (True, True)
    key = client.session.session_key
    assert client.post("/app/choose/", {"tenant": str(two.id)})["Location"] == "/app/"
    assert client.session.session_key != key
    assert "<strong>globex</strong>" in client.get("/app/").content.decode()
    assert client.get("/app/keys/").status_code == 403
    client.post("/app/choose/", {"tenant": str(one.id)})
    assert client.get("/app/keys/").status_code == 200


def test_a_tenant_that_one_is_no_member_of_can_not_be_chosen() -> None:
    mine, theirs, person = build_tenant(), build_tenant("theirs"), build_person()
    join(mine, "owner", person)
    client = sign_in(person)
    client.get("/app/choose/")
    for tenant in (theirs.id, "00000000-0000-7000-8000-000000000000", "x", ""):
        assert client.post("/app/choose/", {"tenant": str(tenant)}).status_code == 404
    assert client.session["ductor_tenant"] == str(mine.id)


def test_a_session_that_names_a_foreign_tenant_opens_nothing_of_it() -> None:
    mine, theirs = furnish("alpha"), furnish("omega")
    client = visitor(mine.tenant, "owner")
    session = client.session
    session["ductor_tenant"] = str(theirs.tenant.id)
    session.save()
    for address in addresses(theirs).values():
        answer = client.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/app/choose/")


def test_a_person_without_a_tenant_is_told_so() -> None:
    client = sign_in(build_person("alone@example.com"))
    assert client.get("/app/")["Location"].startswith("/app/choose/")
    shown = client.get("/app/choose/").content.decode()
    assert "alone@example.com" in shown
    assert "member of no tenant" in " ".join(shown.split())


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example",
        "//evil.example/app/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/accounts/logout/",
        "/app",
    ],
)
def test_next_leads_to_pages_of_this_tenant_surface_and_nowhere_else(wanted: str) -> None:
    tenant, person = build_tenant(), build_person()
    join(tenant, "owner", person)
    client = browser()
    answer: Any = client.post(f"/accounts/login/?next={wanted}", {"login": person.email, "password": PASSWORD})
    assert answer["Location"].startswith("/") and "evil" not in answer["Location"]
    assert client.get(f"/app/choose/?next={wanted}")["Location"] == "/app/"
    chosen = client.post("/app/choose/", {"tenant": str(tenant.id), "next": wanted})
    assert chosen["Location"] == "/app/"


def test_a_removed_member_is_refused_at_the_next_request() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "admin", "gone@example.com")
    assert client.get("/app/keys/").status_code == 200
    [(member_id,)] = rows("select id from tenants_member where email = 'gone@example.com'")
    remove_member(tenant_id=furnished.tenant.id, member_id=member_id, principal=furnished.owner)
    before = rows("select count(*) from tenants_act")
    for address in addresses(furnished).values():
        assert client.get(address)["Location"].startswith("/app/choose/")
        assert client.post(address, {"reason": "x"})["Location"] == "/app/choose/"
    assert rows("select count(*) from tenants_act") == before


def test_a_changed_role_is_in_force_at_the_next_request() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "admin", "lower@example.com")
    [(member_id,)] = rows("select id from tenants_member where email = 'lower@example.com'")
    assert client.get("/app/keys/").status_code == 200
    change_role(tenant_id=furnished.tenant.id, member_id=member_id, role="viewer", principal=furnished.owner)
    assert client.get("/app/keys/").status_code == 403
    assert client.post(f"/app/tasks/{furnished.queued}/cancel/").status_code == 403
    assert rows("select state from workflows_task where id = %s", furnished.queued) == [("queued",)]
    change_role(tenant_id=furnished.tenant.id, member_id=member_id, role="owner", principal=furnished.owner)
    assert client.get("/app/keys/").status_code == 200


def test_a_suspended_tenant_and_a_shut_account_open_nothing() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "owner", "shut@example.com")
    owner().execute("update tenants_tenant set status = 'suspended' where id = %s", (furnished.tenant.id,))
    assert client.get("/app/")["Location"].startswith("/app/choose/")
    assert client.post("/app/choose/", {"tenant": str(furnished.tenant.id)}).status_code == 404
    owner().execute("update tenants_tenant set status = 'active' where id = %s", (furnished.tenant.id,))
    assert client.get("/app/").status_code == 200
    owner().execute("update people_person set is_active = false where email = 'shut@example.com'")
    assert client.get("/app/")["Location"].startswith("/accounts/login/")


def test_another_tenant_s_domain_shows_nothing_of_this_one() -> None:
    mine, theirs = furnish("alpha"), furnish("omega")
    client = visitor(mine.tenant, "owner")
    owner().execute(
        "insert into tenants_domain (tenant_id, id, domain, is_primary) values (%s, gen_random_uuid(), %s, true)",
        (theirs.tenant.id, "omega.localhost"),
    )
    answer = client.get("/app/tasks/", SERVER_NAME="omega.localhost")
    assert answer.status_code == 404
    assert "alpha" not in answer.content.decode()
