"""What opens one surface is worth nothing on the other: sessions, forgery tokens, signatures, secrets, people."""

import pytest
from django.conf import settings
from django.core import signing

from ductor import databases
from ductor.surfaces import is_page, is_public
from tenants.people.adapters import SealedMFAAdapter
from tests.builders import rows
from tests.database import owner
from tests.people.signing import PASSWORD, browser, build_person, is_signed_in, sign_in
from tests.surfaces import operator_surface

SIDE = "tests.people.operator_side"
MAIL = "both@example.com"


def test_an_account_of_tenants_opens_nothing_for_operators_and_the_reverse() -> None:
    build_person("tenant@example.com")
    visitor = operator_surface().visitor()
    answer = visitor.post("/accounts/login/", {"login": "tenant@example.com", "password": PASSWORD})
    assert answer.status == 200
    assert "ductor_operator_session" not in visitor.cookies
    operator_surface().operator(MAIL)
    client = browser()
    client.post("/accounts/login/", {"login": MAIL, "password": PASSWORD})
    assert not is_signed_in(client)


def test_a_session_of_one_surface_is_nobody_s_on_the_other() -> None:
    """The same address and the same password on both, so that nothing but the surface tells them apart."""
    client = sign_in(build_person(MAIL))
    operator = operator_surface().operator(MAIL)
    theirs, ours = client.cookies["ductor_session"].value, operator.cookies["ductor_operator_session"]
    for name in ("ductor_operator_session", "ductor_session", "sessionid"):
        visitor = operator_surface().visitor()
        visitor.cookies[name] = theirs
        assert visitor.get("/accounts/2fa/").location.startswith("/accounts/login/"), name
        other = browser()
        other.cookies[name] = ours
        assert not is_signed_in(other), name
    # Nor by its name alone, where the value is the right one.
    visitor = operator_surface().visitor()
    visitor.cookies["ductor_session"] = ours
    assert visitor.get("/accounts/2fa/").location.startswith("/accounts/login/")


def test_a_session_row_copied_over_by_hand_opens_nothing() -> None:
    """Even whoever could write the other table could not sign what stands in it."""
    client = sign_in(build_person(MAIL))
    operator_surface().operator(MAIL)
    key = client.cookies["ductor_session"].value
    owner().execute(
        "insert into operators.django_session select * from public.django_session where session_key = %s", (key,)
    )
    visitor = operator_surface().visitor()
    visitor.cookies["ductor_operator_session"] = key
    assert visitor.get("/accounts/2fa/").location.startswith("/accounts/login/")


def test_a_forgery_token_of_one_surface_is_refused_by_the_other() -> None:
    client = browser()
    client.get("/accounts/login/")
    token = client.cookies["ductor_csrf"].value
    visitor = operator_surface().visitor()
    visitor.cookies["ductor_csrf"] = token
    form = {"login": MAIL, "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert visitor.ask("POST", "/accounts/login/", data=form).status == 403


def test_what_one_surface_signs_or_seals_the_other_does_not_take() -> None:
    surface = operator_surface()
    assert surface.call(f"{SIDE}.loaded", signed=signing.dumps({"a": 1})) == "refused"
    assert signing.loads(signing.dumps({"a": 1})) == {"a": 1}
    sealed = SealedMFAAdapter().encrypt("secret")
    assert surface.call(f"{SIDE}.opened", sealed=sealed) == "refused"
    assert SealedMFAAdapter().decrypt(sealed) == "secret"


def test_cookies_have_names_of_their_own() -> None:
    theirs = operator_surface().call(f"{SIDE}.cookie_settings")
    assert theirs["SESSION_COOKIE_NAME"] == "ductor_operator_session" != settings.SESSION_COOKIE_NAME
    assert theirs["CSRF_COOKIE_NAME"] == "ductor_operator_csrf" != settings.CSRF_COOKIE_NAME
    assert (theirs["SESSION_COOKIE_HTTPONLY"], theirs["SESSION_COOKIE_SAMESITE"]) == (True, "Strict")


def test_one_secret_for_both_surfaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCTOR_SECRET_KEY", "x" * 50)
    monkeypatch.setenv("DUCTOR_OPERATOR_SECRET_KEY", "x" * 50)
    for role in ("web", "operator", "worker", "owner"):
        with pytest.raises(databases.DatabaseUnclear, match="each surface needs its own"):
            databases.secret_key(role)
    monkeypatch.setenv("DUCTOR_OPERATOR_SECRET_KEY", "y" * 50)
    assert databases.secret_key("operator") != databases.secret_key("web")


def test_an_operator_removed_or_reset_is_out_at_the_next_request_and_no_other_one_is() -> None:
    surface = operator_surface()
    removed, reset, other = (surface.operator(f"{name}@example.com") for name in ("a", "b", "c"))
    for visitor in (removed, reset, other):
        assert visitor.get("/accounts/2fa/").status == 200
    surface.call("tenants.people.operators.remove_operator", email="a@example.com")
    surface.call("tenants.people.operators.reset_operator", email="b@example.com", password="a new harbour at dusk")
    for visitor in (removed, reset):
        assert visitor.get("/accounts/2fa/").location.startswith("/accounts/login/")
        assert visitor.get("/admin/").status != 200
    assert other.get("/accounts/2fa/").status == 200
    again = surface.visitor()
    again.post("/accounts/login/", {"login": "a@example.com", "password": PASSWORD})
    assert again.get("/accounts/2fa/").location.startswith("/accounts/login/")
    left = rows(
        "select p.email from operators.mfa_authenticator a join operators.people_person p on p.id = a.user_id"
        " where a.type = 'totp' order by 1"
    )
    assert left == [("a@example.com",), ("c@example.com",)]
    acts = rows("select act, principal ->> 'kind' from tenants_act where act like 'operator.re%%' order by id")
    assert acts == [("operator.remove", "command"), ("operator.reset", "command")]


def test_every_page_of_the_operator_surface_is_behind_the_gate_or_public() -> None:
    """Django's middleware can only guard what it knows for a page."""
    found = operator_surface().call("tests.people.operator_side.routes")
    assert "/metrics" in found
    outside = {path for path in found if not is_page(path)}
    assert {path for path in outside if not is_public(path)} == set()
