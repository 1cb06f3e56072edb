"""Invitations: one address, one tenant, one use, and an end (S13)."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.test import Client, override_settings

from tenants.errors import AlreadyMember, IdentityInvalid, InvitationNotFound
from tenants.identity import SYSTEM_TENANT_ID, new_id
from tenants.invitations import VALID_SECONDS, accept_invitation, find_invitation, invite, revoke_invitation
from tenants.members import list_members
from tenants.people.models import Person
from tenants.queries import TenantView
from tests import clock
from tests.builders import PRINCIPAL, build_tenant, rows
from tests.database import owner
from tests.people.signing import browser, build_person, is_signed_in, join, sign_in
from tests.races import together

ANNA = "anna@example.com"
LIKE_ANNA = (
    "Anna@example.com",
    "ANNA@EXAMPLE.COM",
    "anna+1@example.com",
    "anna@example.com.",
    " anna@example.com",
    "anna@example.com\x00",
    "аnna@example.com",
    "anna@exаmple.com",
    "ànna@example.com",
    "anna＠example.com",
    "anna@example.co",
    "xanna@example.com",
    "anna@example.com@evil.example",
    "bob@example.com",
    "",
)

NO_ADDRESSES = ("аnna@example.com", "anna@exаmple.com", "anna", "a@b@c", "a b@example.com", "@example.com", "")


@pytest.fixture(autouse=True)
def mails() -> Iterator[None]:
    """Mails stay here."""
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend"):
        yield


def offer(tenant: TenantView, email: str = ANNA, role: str = "viewer") -> str:
    return invite(tenant_id=tenant.id, email=email, role=role, principal=PRINCIPAL)[1]


def accept(token: str, *verified: str, person_id: Any = None) -> Any:
    return accept_invitation(token=token, person_id=person_id or new_id(), name="A", verified=verified or (ANNA,))


def state() -> list[Any]:
    """Who is a member of what, and which invitations stand."""
    return [
        rows("select * from tenants_member order by id"),
        rows("select id, used_at, revoked_at from tenants_invitation order by id"),
        rows("select count(*) from tenants_act"),
    ]


def assert_refused(token: str, *verified: str) -> None:
    before = state()
    with pytest.raises(InvitationNotFound):
        accept(token, *verified)
    assert state() == before


def test_twenty_at_once_make_one_member() -> None:
    tenant = build_tenant()
    token = offer(tenant)
    results = together(*[lambda: accept(token) for _ in range(20)])
    made = [result for result in results if not isinstance(result, Exception)]
    assert len(made) == 1
    assert {type(result) for result in results if isinstance(result, Exception)} == {InvitationNotFound}
    assert [one.id for one in list_members(tenant_id=tenant.id)] == [made[0].id]
    assert rows("select count(*) from tenants_act where act = 'invitation.accept'") == [(1,)]
    assert_refused(token)


def test_s13_an_address_that_is_only_like_the_invited_one_is_another() -> None:
    token = offer(build_tenant())
    for like in LIKE_ANNA:
        assert_refused(token, like)
    assert_refused(token, *LIKE_ANNA)
    assert accept(token, *LIKE_ANNA, ANNA).email == ANNA, "the invitation still stands for its own address"


@pytest.mark.parametrize("spelt", ["ANNA@Example.COM", " anna@example.com ", "Anna@example.com"])
def test_an_invitation_is_kept_in_the_one_spelling(spelt: str) -> None:
    tenant = build_tenant()
    found = find_invitation(token=offer(tenant, spelt))
    assert found is not None
    assert found.email == ANNA


def test_what_is_no_plain_address_is_not_invited() -> None:
    tenant = build_tenant()
    for address in (*NO_ADDRESSES, "a@b\nBcc: x@example.com", "x" * 250 + "@example.com"):
        with pytest.raises(IdentityInvalid):
            offer(tenant, address)
    assert rows("select count(*) from tenants_invitation") == [(0,)]


def test_it_ends_by_the_database_s_clock() -> None:
    token = offer(build_tenant())
    clock.advance(VALID_SECONDS - 2)
    assert find_invitation(token=token) is not None
    clock.advance(VALID_SECONDS)
    assert find_invitation(token=token) is None
    assert_refused(token)


def test_taken_back_it_opens_nothing() -> None:
    tenant = build_tenant()
    view, token = invite(tenant_id=tenant.id, email=ANNA, role="viewer", principal=PRINCIPAL)
    revoke_invitation(tenant_id=tenant.id, invitation_id=view.id, principal=PRINCIPAL)
    assert_refused(token)
    used = offer(tenant)
    accept(used)
    [(used_id,)] = rows("select id from tenants_invitation where used_at is not null")
    before = state()
    revoke_invitation(tenant_id=tenant.id, invitation_id=used_id, principal=PRINCIPAL)
    assert state() == before, "one that was used stays as it is"


def test_a_token_opens_its_own_tenant_and_no_other() -> None:
    a, b = build_tenant(), build_tenant()
    of_a, of_b = offer(a), offer(b)
    assert accept(of_a)
    assert [len(list_members(tenant_id=one.id)) for one in (a, b)] == [1, 0]
    [(b_id,)] = rows("select id from tenants_invitation where tenant_id = %s", b.id)
    with pytest.raises(InvitationNotFound):
        revoke_invitation(tenant_id=a.id, invitation_id=b_id, principal=PRINCIPAL)
    assert find_invitation(token=of_b) is not None


@pytest.mark.parametrize("change", ["cut", "other", "longer", "empty", "percent"])
def test_a_token_that_was_changed_opens_nothing(change: str) -> None:
    token = offer(build_tenant())
    other = ("b" if token[0] == "a" else "a") + token[1:]
    changed = {"cut": token[:-1], "other": other, "longer": token + "a", "empty": "", "percent": "%" * 43}[change]
    assert find_invitation(token=changed) is None
    assert_refused(changed)


@pytest.mark.parametrize("status", ["suspended", "closing"])
def test_a_tenant_that_may_not_act_takes_nobody_in(status: str) -> None:
    tenant = build_tenant()
    token = offer(tenant)
    owner().execute("update tenants_tenant set status = %s where id = %s", (status, tenant.id))
    assert_refused(token)


def test_a_member_already_leaves_the_invitation_unused() -> None:
    tenant = build_tenant()
    person = build_person(ANNA)
    join(tenant, "owner", person)
    token = offer(tenant)
    before = state()
    with pytest.raises(AlreadyMember):
        accept(token, person_id=person.pk)
    assert state() == before
    assert find_invitation(token=token) is not None


def test_the_token_is_nowhere_in_the_database() -> None:
    token = offer(build_tenant())
    for table in ("tenants_invitation", "tenants_act"):
        assert rows(f"select count(*) from {table} t where t::text like %s", f"%{token}%") == [(0,)]
    assert rows("select hashed_token from tenants_invitation") == [(hashlib.sha256(token.encode()).hexdigest(),)]


def test_nobody_is_invited_into_the_system_tenant() -> None:
    with pytest.raises(IdentityInvalid):
        invite(tenant_id=SYSTEM_TENANT_ID, email=ANNA, role="viewer", principal=PRINCIPAL)


def holding(token: str) -> Client:
    """Return a browser that followed an invitation's link."""
    client = browser()
    assert client.get(f"/app/invitations/{token}/").status_code == 302
    return client


def sign_up(client: Client, email: str) -> None:
    password = "a quiet harbour at dawn"
    client.post("/accounts/signup/", {"email": email, "name": "Anna", "password1": password, "password2": password})


def test_an_invited_person_signs_up_with_the_invited_address_and_joins() -> None:
    tenant = build_tenant()
    client = holding(offer(tenant, role="operator"))
    sign_up(client, ANNA)
    assert is_signed_in(client)
    assert client.post("/app/invitations/").headers["Location"] == "/app/"
    assert [(one.email, one.role) for one in list_members(tenant_id=tenant.id)] == [(ANNA, "operator")]
    assert client.get("/app/").status_code == 200


def test_s13_nobody_signs_up_with_another_address_than_the_invited_one() -> None:
    token = offer(build_tenant())
    for like in LIKE_ANNA:
        if like.strip().lower() != ANNA:
            client = holding(token)
            sign_up(client, like)
            assert not is_signed_in(client), like
    assert rows("select count(*) from public.people_person") == [(0,)]


@pytest.mark.parametrize("verified", [True, False])
def test_s13_somebody_else_s_session_does_not_join_by_the_link(verified: bool) -> None:
    """Nor does one that only claims the address: what counts is that it was proved."""
    tenant = build_tenant()
    eve = build_person("eve@example.com")
    if not verified:
        EmailAddress.objects.create(user=eve, email=ANNA, verified=False, primary=False)
    client = sign_in(eve)
    client.get(f"/app/invitations/{offer(tenant)}/")
    before = state()
    assert client.post("/app/invitations/").status_code == 404
    assert state() == before
    assert list_members(tenant_id=tenant.id) == []


def test_an_account_of_the_address_that_exists_is_not_taken_over_by_the_link() -> None:
    person = build_person(ANNA)
    client = holding(offer(build_tenant()))
    sign_up(client, ANNA)
    assert not is_signed_in(client)
    assert list(Person.objects.values_list("pk", "password")) == [(person.pk, person.password)]
