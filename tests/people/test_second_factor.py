"""No operator acts without a second factor given, or set up, in that very session (D3)."""

from typing import Any

import pytest

from tests.builders import rows
from tests.surfaces import PASSWORD, Visitor, code_now, operator_surface

MAIL = "ops@example.com"
SIDE = "tests.people.operator_side"
ACTIVATE, LOGIN = "/accounts/2fa/totp/activate/", "/accounts/login/"
FACTOR_PAGES = (
    "/accounts/2fa/",
    "/accounts/2fa/totp/deactivate/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/2fa/recovery-codes/generate/",
    "/accounts/password/change/",
    "/accounts/reauthenticate/",
)


def create() -> None:
    """Make the operator of these tests, who has nothing but a password."""
    operator_surface().call("tenants.people.operators.create_operator", email=MAIL, name="Olu", password=PASSWORD)


def password_given() -> Visitor:
    """Return a browser in which the operator gave the password."""
    visitor = operator_surface().visitor()
    visitor.post(LOGIN, {"login": MAIL, "password": PASSWORD})
    visitor.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return visitor


def smuggled(**more: Any) -> Visitor:
    """Return a browser with a session that no sign-in of django-allauth has opened."""
    visitor = operator_surface().visitor()
    visitor.cookies["ductor_operator_session"] = operator_surface().call(f"{SIDE}.open_session", email=MAIL, **more)
    return visitor


def is_in(visitor: Visitor) -> bool:
    """Say whether the browser is somebody's and gets past the second factor's gate."""
    return visitor.get("/admin/").location != ACTIVATE and visitor.get("/accounts/2fa/").status == 200


def factors() -> list[Any]:
    return rows("select type, data from operators.mfa_authenticator order by id")


def test_the_password_alone_opens_nothing_but_the_setting_up_of_a_second_factor() -> None:
    create()
    visitor = password_given()
    for path in ("/admin/", "/admin/tenants/tenant/", "/app/", "/app/tasks/", "/admin/logout/"):
        answer = visitor.get(path)
        assert (answer.status, answer.location) == (302, ACTIVATE), path
        assert visitor.post(path).location == ACTIVATE
    assert visitor.get(ACTIVATE).status == 200


def test_a_session_in_which_a_factor_was_set_up_is_in() -> None:
    assert is_in(operator_surface().operator())


def test_with_a_second_factor_the_password_leads_to_its_question_and_its_code_in() -> None:
    create()
    secret = operator_surface().call(f"{SIDE}.give_totp", email=MAIL)
    visitor = operator_surface().visitor()
    answer = visitor.post(LOGIN, {"login": MAIL, "password": PASSWORD})
    assert answer.location == "/accounts/2fa/authenticate/"
    assert not is_in(visitor)
    wrong = str((int(code_now(secret)) + 1) % 1_000_000).zfill(6)
    assert visitor.post("/accounts/2fa/authenticate/", {"code": wrong}).status == 200
    assert not is_in(visitor)
    code = code_now(secret)
    assert visitor.post("/accounts/2fa/authenticate/", {"code": code}).status == 302
    assert is_in(visitor)
    again = password_given()
    assert again.post("/accounts/2fa/authenticate/", {"code": code}).status == 200, "a code serves once"
    assert not is_in(again)


def test_a_session_of_the_password_alone_ends_when_a_factor_is_set_up_elsewhere() -> None:
    """Whoever had the password before must not be able to take the factor away and set up one of his own."""
    create()
    early, rightful = password_given(), password_given()
    assert early.get(ACTIVATE).status == 200
    secret = next(word for word in rightful.get(ACTIVATE).text.replace('"', " ").split() if len(word) == 32)
    assert rightful.post(ACTIVATE, {"code": code_now(secret)}).status == 302
    assert is_in(rightful)
    before = factors()
    for path in FACTOR_PAGES:
        assert early.get(path).location.startswith(LOGIN), path
        assert early.post(path, {"password": PASSWORD}).location.startswith(LOGIN), path
    assert not is_in(early)
    assert factors() == before


@pytest.mark.parametrize("factor", ["give_totp", "give_passkey"])
def test_a_session_that_gave_no_factor_ends_at_its_first_request(factor: str) -> None:
    create()
    operator_surface().call(f"{SIDE}.{factor}", email=MAIL)
    before = factors()
    for path in ("/admin/", *FACTOR_PAGES):
        visitor = smuggled()
        assert visitor.get(path).location == LOGIN, path
        assert rows("select count(*) from operators.django_session") == [(0,)]
    assert factors() == before


def test_what_counts_is_the_record_of_that_person_in_that_session() -> None:
    create()
    operator_surface().call(f"{SIDE}.give_passkey", email=MAIL)
    other = "other@example.com"
    operator_surface().call("tenants.people.operators.create_operator", email=other, name="", password=PASSWORD)
    passkey = {"method": "mfa", "type": "webauthn", "passwordless": True}
    assert is_in(smuggled(records=[passkey]))
    assert not is_in(smuggled(records=[passkey], records_of=other))
    assert not is_in(smuggled(records=[{"method": "password"}, {"method": "password", "reauthenticated": True}]))


def test_recovery_codes_alone_are_no_second_factor() -> None:
    create()
    operator_surface().call(f"{SIDE}.give_recovery_codes", email=MAIL)
    visitor = password_given()
    assert visitor.get("/admin/").location == ACTIVATE
    with_record = smuggled(records=[{"method": "mfa", "type": "recovery_codes", "reauthenticated": True}])
    assert with_record.get("/admin/").location == ACTIVATE


def test_no_browser_is_trusted() -> None:
    create()
    operator_surface().call(f"{SIDE}.give_totp", email=MAIL)
    visitor = operator_surface().visitor()
    visitor.cookies["mfa_trusted"] = "anything"
    assert visitor.post(LOGIN, {"login": MAIL, "password": PASSWORD}).location == "/accounts/2fa/authenticate/"
    assert visitor.get("/accounts/2fa/trust/").status == 404


def test_a_factor_that_was_taken_away_has_to_be_set_up_again() -> None:
    visitor = operator_surface().operator(MAIL)
    assert is_in(visitor)
    operator_surface().call("tests.people.operator_side.take_factors", email=MAIL)
    assert visitor.get("/admin/").location == ACTIVATE


def test_no_mail_opens_an_operator_s_account() -> None:
    create()
    visitor = password_given()
    for path in (
        "/accounts/signup/",
        "/accounts/email/",
        "/accounts/confirm-email/abc/",
        "/accounts/password/reset/",
        "/accounts/password/reset/key/x-y/",
        "/accounts/password/set/",
        "/accounts/reauthenticate/code/",
    ):
        assert visitor.get(path).status == 404, path
        assert visitor.post(path, {"email": MAIL}).status == 404, path
    assert operator_surface().outbox() == []
