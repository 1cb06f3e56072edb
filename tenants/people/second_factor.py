"""Whether a session was opened with a second factor, which the operator surface demands."""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa.signals import authenticator_added
from allauth.mfa.utils import is_mfa_enabled
from django.dispatch import receiver
from django.http import HttpRequest

_ACTIVATED = "ductor_second_factor_activated"


def has_passed(request: HttpRequest) -> bool:
    """Say whether this very session gave a second factor, or set one up.

    That the person has one is not enough: a session opened by the password alone before that would be let in too.
    """
    records = get_authentication_records(request, request.user)
    given = any(record.get("method") == "mfa" for record in records) or bool(request.session.get(_ACTIVATED))
    return given and bool(is_mfa_enabled(request.user))


@receiver(authenticator_added, dispatch_uid="ductor-second-factor")
def _note_activation(request: HttpRequest, user: Any, authenticator: Any, **_: Any) -> None:
    request.session[_ACTIVATED] = True
