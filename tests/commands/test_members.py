"""`ductor members`: how a tenant gets its first owner, and how an operator looks and removes."""

from typing import Any

import pytest

from tenants.invitations import find_invitation
from tenants.keys import create_api_key
from tests.api.callers import Caller, assert_problem
from tests.builders import build_tenant, rows
from tests.commands.running import ductor
from tests.people.signing import build_person, join


def invite(*arguments: str) -> Any:
    return ductor("members", "invite", *arguments)


def test_an_invitation_prints_its_link_once_where_no_mail_server_is_named() -> None:
    tenant = build_tenant("acme")
    ran = invite("acme", "First@Example.com", "--role", "owner", "--reason", "new customer", "--json")
    assert (ran.code, ran.err) == (0, "")
    made = ran.document
    assert (made["tenant"], made["email"], made["role"]) == ("acme", "first@example.com", "owner")
    token = made["link"].removesuffix("/").rpartition("/")[2]
    offer = find_invitation(token=token)
    assert offer and (offer.tenant_id, offer.email, offer.role) == (tenant.id, "first@example.com", "owner")
    assert made["link"] == f"http://localhost:8000/app/invitations/{token}/"
    acts = rows("select act, reason, principal ->> 'kind' from tenants_act where act like 'invitation%%'")
    assert acts == [("invitation.create", "new customer", "command")]
    listed = ductor("members", "invitations", "acme", "--json")
    assert [one["email"] for one in listed.document["invitations"]] == ["first@example.com"]
    assert token not in listed.out + str(rows("select i::text from tenants_invitation i"))


def test_with_a_mail_server_the_link_is_mailed_and_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    build_tenant("acme")
    sent: list[dict[str, Any]] = []
    monkeypatch.setenv("DUCTOR_EMAIL_URL", "smtp://mail.example.com")
    monkeypatch.setattr("ductor.commands.members.mail_invitation", lambda **known: sent.append(known) or True)
    ran = invite("acme", "first@example.com", "--role", "owner", "--json")
    assert (ran.code, ran.document["mailed"]) == (0, True)
    assert "link" not in ran.document
    [known] = sent
    assert (known["invitation"].email, known["tenant"]) == ("first@example.com", "acme")
    assert known["token"] not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("acme", "first@example.com"),
        ("acme", "first@example.com", "--role", "king"),
        ("acme", "no-address", "--role", "owner"),
        ("acme", "é@example.com", "--role", "owner"),
        ("system", "first@example.com", "--role", "owner"),
        ("acme",),
    ],
)
def test_wrong_usage_invites_nobody(arguments: tuple[str, ...]) -> None:
    build_tenant("acme")
    ran = invite(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert rows("select count(*) from tenants_invitation") == [(0,)]


def test_members_are_listed_and_removed_by_address_with_the_keys_they_made() -> None:
    tenant, other = build_tenant("acme"), build_tenant("globex")
    join(tenant, "owner", build_person("owner@example.com"))
    _, maker = join(tenant, "admin", build_person("admin@example.com"))
    theirs, _ = join(other, "owner", build_person("other@example.com"))
    _, key = create_api_key(tenant_id=tenant.id, name="k", scopes=["tasks:read"], principal=maker)
    listed = ductor("members", "list", "acme", "--json").document["members"]
    assert [(one["email"], one["role"]) for one in listed] == [
        ("owner@example.com", "owner"),
        ("admin@example.com", "admin"),
    ]
    assert Caller(tenant, key).get().status_code == 200
    for stranger in ("other@example.com", str(theirs.id), "nobody@example.com", "x"):
        assert ductor("members", "remove", "acme", stranger).code == 4
    ran = ductor("members", "remove", "acme", "Admin@example.com", "--reason", "left", "--json")
    assert (ran.code, ran.document["revoked_keys"]) == (0, 1)
    assert_problem(Caller(tenant, key).get(), 401, "unauthenticated")
    left = rows("select email from tenants_member order by email")
    assert left == [("other@example.com",), ("owner@example.com",)]
    assert rows("select reason from tenants_act where act = 'member.remove'") == [("left",)]


def test_the_last_owner_stays() -> None:
    tenant = build_tenant("acme")
    owner, _ = join(tenant, "owner")
    ran = ductor("members", "remove", "acme", str(owner.id))
    assert (ran.code, ran.err.split(":")[1].strip()) == (3, "last_owner")
    assert rows("select count(*) from tenants_member") == [(1,)]
