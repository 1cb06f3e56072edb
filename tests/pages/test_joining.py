"""From the invitation's link to being a member: for the invited address, once, and for nobody else (S19)."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from django.test import Client, override_settings

from tenants.queries import TenantView
from tests.builders import build_tenant, rows
from tests.database import owner
from tests.pages.ground import visitor
from tests.people.signing import PASSWORD, browser, build_person, join, sign_in

NEW = "new@example.com"


@pytest.fixture(autouse=True)
def mails() -> Iterator[None]:
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend"):
        mail.outbox = []
        yield


def invited(role: str = "viewer", address: str = NEW) -> tuple[TenantView, str, Client]:
    """Let an owner invite an address on the page; returns the path of the link out of the mail, and the owner."""
    tenant = build_tenant()
    inviter = visitor(tenant, "owner")
    answer = inviter.post("/app/members/", {"email": address, "role": role})
    assert answer.status_code == 302
    found = re.search(r"(/app/invitations/[\w-]{43}/)", mail.outbox[-1].body)
    assert found
    return tenant, found[1], inviter


def members(tenant: TenantView) -> list[Any]:
    return rows("select email, role from tenants_member where tenant_id = %s order by joined_at", tenant.id)


def sign_up(client: Client, **more: str) -> Any:
    form = {"email": NEW, "name": "Noa New", "password1": PASSWORD, "password2": PASSWORD, **more}
    return client.post("/accounts/signup/?next=/app/invitations/", form)


def test_a_new_person_signs_up_by_the_link_and_joins_in_the_invited_role() -> None:
    tenant, link, inviter = invited("operator")
    client = browser()
    opened = client.get(link)
    assert (opened.status_code, opened["Location"]) == (302, "/app/invitations/")
    shown = client.get("/app/invitations/").content.decode()
    assert all(text in shown for text in (tenant.slug, "operator", NEW, "/accounts/signup/"))
    assert sign_up(client)["Location"] == "/app/invitations/"
    assert f"Join as {NEW}" in client.get("/app/invitations/").content.decode()
    assert len(members(tenant)) == 1
    joined = client.post("/app/invitations/")
    assert joined["Location"] == "/app/"
    assert client.get("/app/").status_code == 200
    assert members(tenant)[1] == (NEW, "operator")
    assert "Noa New" in inviter.get("/app/members/").content.decode()
    assert rows("select act from tenants_act order by at")[-1] == ("invitation.accept",)


def test_the_link_is_shown_to_nobody_and_leaves_the_address_at_once() -> None:
    _, link, inviter = invited()
    token = link.split("/")[3]
    client = browser()
    client.get(link)
    pages = [inviter.get("/app/members/"), inviter.get("/app/audit/"), client.get("/app/invitations/")]
    pages += [client.get("/accounts/signup/?next=/app/invitations/")]
    assert [page.status_code for page in pages] == [200] * 4
    assert not any(token in page.content.decode() for page in pages)
    assert mail.outbox[-1].to == [NEW]


def test_the_link_works_once() -> None:
    tenant, link, _ = invited()
    client = browser()
    client.get(link)
    sign_up(client)
    client.post("/app/invitations/")
    for later in (client, browser()):
        assert later.get(link).status_code == 404
        assert later.get("/app/invitations/").status_code == 404
        assert later.post("/app/invitations/").status_code == 404
    assert len(members(tenant)) == 2


def test_nobody_signs_up_without_an_invitation_or_for_another_address() -> None:
    _, link, _ = invited()
    stranger = browser()
    assert "by invitation" in stranger.get("/accounts/signup/").content.decode()
    sign_up(stranger)
    client = browser()
    client.get(link)
    assert sign_up(client, email="other@example.com").status_code == 200
    assert rows("select count(*) from people_person where email in ('new@example.com', 'other@example.com')") == [(0,)]


def test_somebody_else_who_signed_in_can_not_take_the_invitation() -> None:
    tenant, link, _ = invited()
    thief = sign_in(build_person("thief@example.com"))
    assert thief.get(link).status_code == 302
    shown = thief.get("/app/invitations/").content.decode()
    assert "thief@example.com" in shown
    assert "Join as" not in shown
    assert thief.post("/app/invitations/").status_code == 404
    assert len(members(tenant)) == 1
    assert rows("select used_at from tenants_invitation") == [(None,)]


def test_an_address_that_was_not_verified_joins_nothing() -> None:
    tenant, link, _ = invited()
    person = build_person("somebody@example.com")
    owner().execute(
        'insert into account_emailaddress (user_id, email, verified, "primary") values (%s, %s, false, false)',
        (person.pk, NEW),
    )
    client = sign_in(person)
    client.get(link)
    assert client.post("/app/invitations/").status_code == 404
    assert len(members(tenant)) == 1


def test_a_person_with_an_account_joins_another_tenant_and_acts_for_it() -> None:
    first, person = build_tenant("first"), build_person(NEW)
    join(first, "owner", person)
    second, link, _ = invited("auditor")
    client = sign_in(person)
    client.get(link)
    assert client.post("/app/invitations/")["Location"] == "/app/"
    assert f"<strong>{second.slug}</strong>" in client.get("/app/").content.decode()
    assert (client.get("/app/audit/").status_code, client.post("/app/keys/").status_code) == (200, 403)


def test_who_is_a_member_keeps_the_role_and_the_invitation_stays_unused() -> None:
    tenant, link, _ = invited("admin")
    person = build_person(NEW)
    join(tenant, "viewer", person)
    client = sign_in(person)
    client.get(link)
    assert client.post("/app/invitations/")["Location"] == "/app/"
    assert (NEW, "viewer") in members(tenant)
    assert rows("select used_at from tenants_invitation") == [(None,)]


def test_what_was_taken_back_or_has_expired_opens_nothing() -> None:
    tenant, link, inviter = invited()
    [(invitation,)] = rows("select id from tenants_invitation")
    client = browser()
    client.get(link)
    assert inviter.post(f"/app/members/invitations/{invitation}/revoke/").status_code == 302
    assert client.get("/app/invitations/").status_code == 404
    sign_up(client)
    assert rows("select count(*) from people_person where email = %s", NEW) == [(0,)]
    _, late, _ = invited()
    owner().execute("update tenants_invitation set expires_at = ductor_now() where revoked_at is null")
    assert browser().get(late).status_code == 404
    assert len(members(tenant)) == 1


@pytest.mark.parametrize("token", ["x", "a" * 43, "a" * 5000, "%00" * 10, "..", "' or 1=1 --"])
def test_a_made_up_link_opens_nothing(token: str) -> None:
    answer = browser().get(f"/app/invitations/{token}/")
    assert answer.status_code == 404
    assert "held" not in answer.content.decode()


def test_a_mail_that_does_not_go_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = build_tenant()
    inviter = visitor(tenant, "owner")
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend", EMAIL_PORT=1):
        inviter.post("/app/members/", {"email": NEW, "role": "viewer"})
    shown = inviter.get("/app/members/").content.decode()
    assert f"The mail to {NEW} did not go out" in shown
