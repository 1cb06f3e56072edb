"""Signing in to the tenant surface: sessions begin and end where they should, and nobody learns who has an account."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core import mail
from django.test import Client, override_settings

from ductor.accounts_settings import account_settings
from tests.builders import rows
from tests.database import owner
from tests.people.signing import (
    PASSWORD,
    browser,
    build_person,
    code_now,
    give_totp,
    is_signed_in,
    sessions,
    set_up_totp,
    sign_in,
)

NEW_PASSWORD = "another harbour, at dusk"
RESET = "/accounts/password/reset/"


@pytest.fixture(autouse=True)
def mails() -> Iterator[None]:
    """Mails stay here."""
    mail.outbox = []
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend"):
        yield


def as_seen(response: Any, *said: str) -> tuple[Any, ...]:
    """All that a visitor can tell an answer by, without what differs by chance or was said by the visitor himself."""
    text = response.content.decode()
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"|X-CSRFToken[^}]*', "", text)
    text = re.sub(r'nonce="[^"]*"', "", text)
    for word in said:
        text = text.replace(word, "<said>")
    return response.status_code, response.get("Location", ""), text


def test_a_session_gets_a_new_key_at_the_sign_in_and_the_one_before_stays_nobody_s() -> None:
    person = build_person()
    client = browser()
    session = client.session
    session["planted"] = "x"
    session.save()
    planted = session.session_key
    client.cookies["ductor_session"] = planted
    client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    assert is_signed_in(client)
    assert client.cookies["ductor_session"].value != planted
    thief = browser()
    thief.cookies["ductor_session"] = planted
    assert not is_signed_in(thief)
    assert rows("select count(*) from public.django_session where session_key = %s", planted) == [(0,)]


def test_signing_out_ends_the_session_for_whoever_kept_its_cookie() -> None:
    client = sign_in(build_person())
    kept = client.cookies["ductor_session"].value
    assert client.get("/accounts/logout/").status_code == 200, "a link alone signs nobody out"
    assert is_signed_in(client)
    client.post("/accounts/logout/")
    thief = browser()
    thief.cookies["ductor_session"] = kept
    assert not is_signed_in(thief)
    assert rows("select count(*) from public.django_session where session_key = %s", kept) == [(0,)]


def test_a_new_password_ends_the_other_sessions() -> None:
    person = build_person()
    here, there = sign_in(person), sign_in(person)
    change = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert here.post("/accounts/password/change/", change).status_code == 302
    assert not is_signed_in(there)
    assert is_signed_in(here)
    assert not is_signed_in(sign_in(person))


def test_setting_up_a_second_factor_ends_the_sessions_of_the_password_alone() -> None:
    person = build_person()
    early, rightful = sign_in(person), sign_in(person)
    rightful.post("/accounts/reauthenticate/", {"password": PASSWORD})
    key = rightful.cookies["ductor_session"].value
    set_up_totp(rightful)
    assert is_signed_in(rightful)
    assert rightful.cookies["ductor_session"].value != key
    assert not is_signed_in(early)
    assert early.post("/accounts/2fa/totp/deactivate/").status_code == 302
    assert rows("select type from public.mfa_authenticator where type = 'totp'") == [("totp",)]


def test_a_second_factor_is_asked_for_and_kept_sealed() -> None:
    person = build_person()
    secret = give_totp(person)
    client = sign_in(person)
    assert not is_signed_in(client)
    assert client.post("/accounts/2fa/authenticate/", {"code": code_now(secret)}).status_code == 302
    assert is_signed_in(client)
    [(data,)] = rows("select data::text from public.mfa_authenticator where type = 'totp'")
    assert secret not in data


def test_a_person_shut_out_is_nobody_at_the_next_request() -> None:
    person = build_person()
    client = sign_in(person)
    owner().execute("update public.people_person set is_active = false where id = %s", (person.pk,))
    assert not is_signed_in(client)
    assert not is_signed_in(sign_in(person))


def test_without_the_site_s_token_no_form_is_taken() -> None:
    person = build_person()
    client = browser(enforce_csrf_checks=True)
    answer = client.post("/accounts/login/", {"login": person.email, "password": PASSWORD})
    assert answer.status_code == 403
    assert sessions() == 0


@pytest.mark.parametrize("verified", [True, False])
def test_a_wrong_password_and_an_unknown_address_are_one_answer(verified: bool) -> None:
    known, unknown = build_person(verified=verified).email, "nobody@example.com"
    answers = [
        as_seen(browser().post("/accounts/login/", {"login": email, "password": "wrong"}), email)
        for email in (known, unknown)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == 200


def test_a_reset_of_a_known_and_of_an_unknown_address_are_one_answer() -> None:
    known, unknown = build_person().email, "nobody@example.com"
    answers = [as_seen(browser().post(RESET, {"email": email}), email) for email in (known, unknown)]
    assert answers[0] == answers[1]
    assert answers[0][:2] == (302, "/accounts/password/reset/done/")
    assert [one.to for one in mail.outbox] == [[known], [unknown]]
    assert "/reset/key/" in str(mail.outbox[0].body)
    assert "/reset/key/" not in str(mail.outbox[1].body)


def test_nobody_signs_up_without_an_invitation() -> None:
    form = {"email": "new@example.com", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    browser().post("/accounts/signup/", form)
    assert rows("select count(*) from public.people_person") == [(0,)]


def reset_link(email: str, host: str = "localhost") -> str:
    """Ask for a new password and return the address in the mail."""
    mail.outbox.clear()
    browser(host).post(RESET, {"email": email})
    found = re.search(r"https?://\S+/reset/key/\S+", str(mail.outbox[0].body))
    assert found
    return found[0]


def open_reset(link: str) -> tuple[Client, str]:
    """Follow a reset link; returns the browser and the page's path."""
    client = browser()
    path = re.sub(r"^https?://[^/]+", "", link)
    answer = client.get(path)
    return client, answer.get("Location", path)


def test_a_reset_changes_the_password_once_ends_all_sessions_and_is_no_sign_in() -> None:
    person = build_person()
    give_totp(person)
    session = sign_in(build_person())
    link = reset_link(person.email)
    client, path = open_reset(link)
    form = {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert client.post(path, form).status_code == 302
    person.refresh_from_db()
    assert person.check_password(NEW_PASSWORD)
    assert not is_signed_in(client)
    assert is_signed_in(session), "another person's session"
    assert sign_in(person, password=NEW_PASSWORD).get("/accounts/2fa/").status_code == 302, "the factor is still asked"
    thief, path = open_reset(link)
    thief.post(path, {"password1": "x" * 20, "password2": "x" * 20})
    person.refresh_from_db()
    assert person.check_password(NEW_PASSWORD)


@override_settings(ALLOWED_HOSTS=["localhost", "evil.example"], DUCTOR_BASE_URL="https://home.example")
def test_links_in_mails_lead_home_whatever_host_was_asked() -> None:
    person = build_person()
    assert reset_link(person.email, host="evil.example").startswith("https://home.example/accounts/password/reset/key/")
    browser("evil.example").post(RESET, {"email": "nobody@example.com"})
    for one in mail.outbox:
        assert "evil.example" not in f"{one.subject} {one.body} {one.alternatives}"  # type: ignore[attr-defined]


def test_cookies_are_kept_from_scripts_and_from_other_sites() -> None:
    answer = browser().get("/accounts/login/")
    assert answer.cookies["ductor_csrf"]["samesite"] == "Lax"
    client = sign_in(build_person())
    cookie = client.cookies["ductor_session"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "Lax", "/", "")


@pytest.mark.parametrize("role", ["web", "operator"])
def test_with_tls_cookies_are_the_host_s_alone_and_go_over_tls_only(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCTOR_TLS", "1")
    found = account_settings(role)
    for kind in ("SESSION", "CSRF"):
        assert found[f"{kind}_COOKIE_NAME"].startswith("__Host-")
        assert found[f"{kind}_COOKIE_SECURE"] is True
        assert f"{kind}_COOKIE_DOMAIN" not in found
        assert f"{kind}_COOKIE_PATH" not in found
    assert found["SESSION_COOKIE_HTTPONLY"] is True
    assert found["SECURE_SSL_REDIRECT"] is True
    assert found["SECURE_HSTS_SECONDS"] >= 365 * 86_400
    assert found["MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN"] is False
    assert account_settings("operator")["SESSION_COOKIE_SAMESITE"] == "Strict"
    tenants, operators = account_settings("web"), account_settings("operator")
    for name in ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME"):
        assert tenants[name] != operators[name]


def test_signing_in_removes_sessions_that_have_run_out_and_no_others() -> None:
    living, gone = sign_in(build_person()), sign_in(build_person())
    key = gone.cookies["ductor_session"].value
    expire = "update public.django_session set expire_date = now() - interval '1 s' where session_key = %s"
    owner().execute(expire, (key,))
    assert not is_signed_in(gone)
    sign_in(build_person())
    assert rows("select count(*) from public.django_session where session_key = %s", key) == [(0,)]
    assert is_signed_in(living)
