"""People of the tenant surface under test: accounts, members, and browsers that sign in as they do."""

import itertools
from typing import Any
from uuid import UUID

from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import (
    TOTP,
    format_hotp_value,
    generate_totp_secret,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.test import Client

from tenants.identity import new_id
from tenants.members import MemberView, list_members
from tenants.people.models import Person
from tenants.principals import Principal
from tenants.queries import TenantView
from tests.builders import rows
from tests.database import owner

PASSWORD = "a quiet harbour at dawn"
_numbers = itertools.count(1)


def build_person(email: str = "", *, verified: bool = True) -> Person:
    """Make an account as a sign-up leaves it."""
    person = Person(email=email or f"person-{next(_numbers)}@example.com", name="Somebody")
    person.set_password(PASSWORD)
    person.save()
    EmailAddress.objects.create(user=person, email=person.email, verified=verified, primary=True)
    return person


def join(tenant: TenantView, role: str, person: Person | None = None) -> tuple[MemberView, Principal]:
    """Make a person a member of a tenant, and return it with the principal that its requests have."""
    who = person or build_person()
    owner().execute(
        "insert into tenants_member (tenant_id, id, person_id, email, name, role, joined_at)"
        " values (%s, %s, %s, %s, '', %s, ductor_now())",
        (tenant.id, new_id(), who.pk, who.email, role),
    )
    [member] = [one for one in list_members(tenant_id=tenant.id, limit=1000) if one.person_id == who.pk]
    return member, Principal(kind="person", id=str(who.pk), name=who.email, role=role)


def browser(host: str = "localhost", **more: Any) -> Client:
    """Return a browser without cookies that shows errors as a visitor sees them."""
    return Client(SERVER_NAME=host, raise_request_exception=False, **more)


def sign_in(person: Person, *, host: str = "localhost", password: str = PASSWORD, **more: Any) -> Client:
    """Give the password in a new browser."""
    client = browser(host, **more)
    client.post("/accounts/login/", {"login": person.email, "password": password})
    return client


def choose(client: Client, tenant_id: UUID) -> None:
    """Let the browser's session act for a tenant, as the page of choosing does."""
    session = client.session
    session["ductor_tenant"] = str(tenant_id)
    session.save()


def set_up_totp(client: Client) -> str:
    """Set a second factor up in a signed-in browser; returns its secret."""
    client.get("/accounts/2fa/totp/activate/")
    secret = str(client.session["mfa.totp.secret"])
    answer = client.post("/accounts/2fa/totp/activate/", {"code": code_now(secret)})
    assert answer.status_code == 302, answer.content
    return secret


def give_totp(person: Person) -> str:
    """Let a person have a second factor; returns its secret."""
    secret = str(generate_totp_secret())
    TOTP.activate(person, secret)
    return secret


def code_now(secret: str) -> str:
    """Return the six digits that an authenticator app shows now for a TOTP secret."""
    counters = list(yield_hotp_counters_from_time())
    return str(format_hotp_value(hotp_value(secret, counters[len(counters) // 2])))


def is_signed_in(client: Client) -> bool:
    """Say whether the browser is somebody's: only then do the pages of an account open."""
    return bool(client.get("/accounts/2fa/").status_code == 200)


def sessions() -> int:
    """Count the sessions of the tenant surface."""
    [(count,)] = rows("select count(*) from public.django_session")
    return int(count)
