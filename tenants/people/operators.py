"""Operators: made, shut out and reset by whoever may run commands on the operator's side (DESIGN D3)."""

from dataclasses import dataclass
from uuid import UUID

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from psycopg.errors import UniqueViolation

from tenants.audit import record_system
from tenants.errors import AlreadyMember, IdentityInvalid, MemberNotFound
from tenants.invitations import parse_address
from tenants.people.models import Person
from tenants.principals import Principal


@dataclass(frozen=True, slots=True)
class OperatorView:
    """One operator."""

    id: UUID
    email: str
    name: str
    active: bool
    second_factor: bool


def create_operator(*, email: str, name: str, password: str, principal: Principal | None = None) -> OperatorView:
    """Make an operator with a verified address.

    Raises:
        IdentityInvalid: no address, or a password that is too weak.
        AlreadyMember: there is an operator of this address.
    """
    address = parse_address(email)
    person = Person(email=address, name=name)
    _set_password(person, password)
    try:
        with transaction.atomic():
            person.save()
            EmailAddress.objects.create(user=person, email=address, verified=True, primary=True)
            _record("operator.create", person, principal)
    except IntegrityError as error:
        if not isinstance(error.__cause__, UniqueViolation):
            raise
        raise AlreadyMember(f"There is an operator {address}; `manage.py ductor operators list` shows all.") from None
    return _view(person.email)


def list_operators() -> list[OperatorView]:
    """Return all operators (at most 1,000), by address."""
    factor = Authenticator.objects.filter(user=OuterRef("pk")).exclude(type=Authenticator.Type.RECOVERY_CODES)
    people = Person.objects.annotate(second_factor=Exists(factor)).order_by("email")
    columns = ("id", "email", "name", "is_active", "second_factor")
    return [OperatorView(*row) for row in people.values_list(*columns)[:1000]]


def remove_operator(*, email: str, principal: Principal | None = None) -> None:
    """Shut an operator out, from the next request on.

    Raises:
        MemberNotFound: there is no such operator.
    """
    with transaction.atomic():
        person = _locked(email)
        person.is_active = False
        person.save(update_fields=["is_active"])
        _record("operator.remove", person, principal)


def reset_operator(*, email: str, password: str, principal: Principal | None = None) -> None:
    """Give an operator a new password and take the second factors away; ends the operator's sessions, which go by it.

    Raises:
        MemberNotFound: there is no such operator.
        IdentityInvalid: the password is too weak.
    """
    with transaction.atomic():
        person = _locked(email)
        _set_password(person, password)
        person.is_active = True
        person.save(update_fields=["password", "is_active"])
        Authenticator.objects.filter(user=person).delete()
        _record("operator.reset", person, principal)


def _locked(email: str) -> Person:
    person = Person.objects.select_for_update().filter(email=email.lower()).first()
    if person is None:
        raise MemberNotFound(f"There is no operator {email!r}; `manage.py ductor operators list` shows all.")
    return person


def _set_password(person: Person, password: str) -> None:
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise IdentityInvalid(" ".join(error.messages)) from None
    person.set_password(password)


def _view(email: str) -> OperatorView:
    return next(view for view in list_operators() if view.email == email)


def _record(act: str, person: Person, principal: Principal | None) -> None:
    record_system(
        principal=principal or Principal.command(),
        act=act,
        target_kind="operator",
        target_id=str(person.id),
        after={"email": person.email},
    )
