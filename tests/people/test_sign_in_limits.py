"""Guessing is counted: by address, by visitor, for all processes at once, and a count can't be pushed out."""

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import override_settings

from tenants.cache import system_keys
from tests.builders import rows
from tests.people.signing import PASSWORD, browser, build_person, code_now, give_totp, is_signed_in, sign_in

LOGIN = "/accounts/login/"


def guess(email: str, count: int, **more: str) -> None:
    for number in range(count):
        browser().post(LOGIN, {"login": email, "password": f"wrong {number}"}, **more)  # type: ignore[arg-type]


def test_after_five_wrong_passwords_the_right_one_is_refused_too() -> None:
    person, other = build_person(), build_person()
    guess(person.email, 5)
    assert not is_signed_in(sign_in(person))
    assert is_signed_in(sign_in(other)), "only that account waits"
    guess("nobody@example.com", 5)
    answers = [
        browser().post(LOGIN, {"login": email, "password": "wrong"}).content.count(b"Too many")
        for email in (person.email, "nobody@example.com")
    ]
    assert answers == [1, 1], "an address without an account waits as well"


def test_wrong_codes_are_counted_as_well() -> None:
    person = build_person()
    secret = give_totp(person)
    for _ in range(6):
        client = sign_in(person)
        client.post("/accounts/2fa/authenticate/", {"code": str((int(code_now(secret)) + 7) % 1_000_000).zfill(6)})
    client = sign_in(person)
    client.post("/accounts/2fa/authenticate/", {"code": code_now(secret)})
    assert not is_signed_in(client)


def test_the_count_stands_in_the_database_under_the_platform_s_own_name() -> None:
    guess(build_person().email, 1)
    keys = [key for (key,) in rows("select cache_key from tenants_cache_web")]
    assert keys != []
    assert all(key.startswith("system:") for key in keys)


def test_a_count_is_not_pushed_out_by_many_others() -> None:
    person = build_person()
    guess(person.email, 5)
    with system_keys():
        for number in range(400):
            cache.set(f"other-{number}", 1)
    assert not is_signed_in(sign_in(person))
    assert settings.CACHES["default"]["OPTIONS"]["MAX_ENTRIES"] >= 10_000


@override_settings(ALLAUTH_TRUSTED_PROXY_COUNT=1)
def test_behind_a_proxy_each_visitor_has_a_count_of_its_own_and_can_t_change_its_name() -> None:
    person = build_person()
    for number in range(12):
        # What a visitor writes into the header himself stands left of what the proxy adds.
        spoofed = f"10.0.0.{number}, 192.0.2.1"
        form = {"login": f"x{number}@example.com", "password": "wrong"}
        browser().post(LOGIN, form, headers={"X-Forwarded-For": spoofed})
    form = {"login": person.email, "password": PASSWORD}
    blocked = browser()
    blocked.post(LOGIN, form, headers={"X-Forwarded-For": "10.9.9.9, 192.0.2.1"})
    assert not is_signed_in(blocked)
    elsewhere = browser()
    elsewhere.post(LOGIN, form, headers={"X-Forwarded-For": "192.0.2.2"})
    assert is_signed_in(elsewhere)


def test_without_a_proxy_the_header_is_nobody_s_name() -> None:
    person = build_person()
    for number in range(12):
        browser().post(
            LOGIN,
            {"login": f"x{number}@example.com", "password": "wrong"},
            headers={"X-Forwarded-For": f"1.1.1.{number}"},
        )
    assert not is_signed_in(sign_in(person))


@pytest.mark.parametrize("path", ["/accounts/password/reset/", "/accounts/reauthenticate/"])
def test_other_doors_are_counted_too(path: str) -> None:
    client = sign_in(build_person()) if "reauthenticate" in path else browser()
    answers = {client.post(path, {"email": "a@example.com", "password": "wrong"}).status_code for _ in range(25)}
    assert 429 in answers or path == "/accounts/reauthenticate/"
    if path == "/accounts/reauthenticate/":
        client.post(path, {"password": PASSWORD})
        assert client.get("/accounts/2fa/totp/activate/").status_code == 302, "not even the right password opens it now"
