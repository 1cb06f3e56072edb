"""`ductor operators`: who may sign in to the operator surface."""

import pytest

from tests.builders import rows
from tests.commands.running import ductor

MAIL = "ops@example.com"
ONE = "select email, is_active, password from operators.people_person"


def test_an_operator_is_made_listed_reset_and_removed() -> None:
    made = ductor("operators", "create", "Ops@Example.com", "--name", "Olu", "--json").document
    assert made["email"] == MAIL
    [(email, active, first)] = rows(ONE)
    assert (email, active) == (MAIL, True)
    assert made["password"] not in first
    listed = ductor("operators", "list", "--json").document["operators"]
    assert listed == [{"email": MAIL, "name": "Olu", "active": True, "second_factor": False}]
    fresh = ductor("operators", "reset", MAIL, "--json").document["password"]
    assert fresh != made["password"]
    assert ductor("operators", "remove", MAIL, "--json").document == {"email": MAIL, "active": False}
    [(_, active, second)] = rows(ONE)
    assert not active
    assert second != first
    acts = rows("select act, target_kind from tenants_act order by id")
    assert acts == [(f"operator.{act}", "operator") for act in ("create", "reset", "remove")]


def test_operators_stand_in_their_own_schema_alone() -> None:
    ductor("operators", "create", MAIL)
    assert rows("select count(*) from public.people_person") == [(0,)]
    assert rows("select verified, email from operators.account_emailaddress") == [(True, MAIL)]


@pytest.mark.parametrize("email", ["", "nobody", "two@@example.com", "ünï@example.com", "x" * 250 + "@example.com"])
def test_what_is_no_address_makes_nobody(email: str) -> None:
    ran = ductor("operators", "create", email)
    assert ran.code == 2
    assert "address" in ran.err
    assert rows("select count(*) from operators.people_person") == [(0,)]


def test_the_same_address_twice_is_refused_and_changes_nothing() -> None:
    ductor("operators", "create", MAIL)
    before = rows(ONE)
    assert ductor("operators", "create", MAIL).code == 3
    assert rows(ONE) == before


@pytest.mark.parametrize("password", ["", "short", "elevenchars", "1qaz2wsx3edc", "123456789012"])
def test_a_weak_password_is_refused(password: str) -> None:
    ran = ductor("operators", "create", MAIL, "--password-stdin", stdin=f"{password}\n".encode())
    assert ran.code == 2
    assert "password" in ran.err.lower()
    assert rows("select count(*) from operators.people_person") == [(0,)]


@pytest.mark.parametrize("act", ["remove", "reset"])
def test_an_unknown_operator_is_not_found(act: str) -> None:
    assert ductor("operators", act, "nobody@example.com").code == 4
