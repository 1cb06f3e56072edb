"""Whether a session was opened with a second factor, which the operator surface demands."""

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added
from allauth.mfa.utils import is_mfa_enabled
from django.dispatch import receiver
from django.http import HttpRequest

_ACTIVATED = "ductor_second_factor_activated"
# Recovery codes stand in for one of these for once; alone they are no second factor.
_FACTORS = [Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN]


def has_factor(person: Any) -> bool:
    """Say whether the person has set up a second factor."""
    return bool(is_mfa_enabled(person, types=_FACTORS))


def has_passed(request: HttpRequest) -> bool:
    """Say whether this very session gave a second factor, or set one up.

    That the person has one is not enough: a session opened by the password alone would be let in too.
    """
    records = get_authentication_records(request, request.user)
    return any(record.get("method") == "mfa" for record in records) or bool(request.session.get(_ACTIVATED))


@receiver(authenticator_added, dispatch_uid="ductor-second-factor")
def _note_activation(request: HttpRequest, user: Any, authenticator: Authenticator, **_: Any) -> None:
    """A session that the password alone opened earlier, elsewhere, must not outlive that moment."""
    if authenticator.type in _FACTORS:
        user.end_other_sessions(request)
        request.session[_ACTIVATED] = True
