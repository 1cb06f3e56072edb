"""How django-allauth signs people in here: who may sign up, and how second factors are kept."""

import base64
from functools import lru_cache
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from cryptography.fernet import Fernet, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from tenants.invitations import InvitationOffer
from tenants.people.offers import offer_of


class _LowerCaseAdapter(DefaultAccountAdapter):
    """Addresses are ASCII and lower case, so that two spellings are never two people."""

    def clean_email(self, email: str) -> str:
        if not email.isascii():
            raise ValidationError("An address here is written in ASCII letters.", code="not_ascii")
        cleaned: str = super().clean_email(email.lower())
        return cleaned


class TenantAccountAdapter(_LowerCaseAdapter):
    """People of tenants sign up by an invitation only."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return offer_of(request) is not None

    def is_email_verified(self, request: HttpRequest, email: str) -> bool:
        """The token of an invitation is known from the mail to its address alone, so it proves the address."""
        offer: InvitationOffer | None = offer_of(request)
        return (offer is not None and offer.email == email.lower()) or super().is_email_verified(request, email)


class OperatorAccountAdapter(_LowerCaseAdapter):
    """Operators are made by `manage.py ductor operators create`; nobody signs up."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


class SealedMFAAdapter(DefaultMFAAdapter):
    """Keeps secrets of second factors sealed with a key derived from SECRET_KEY: a stolen table opens nothing."""

    def encrypt(self, text: str) -> str:
        return _seal(settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS)).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        seal = _seal(settings.SECRET_KEY, tuple(settings.SECRET_KEY_FALLBACKS))
        return seal.decrypt(encrypted_text.encode()).decode()

    def _get_user_identifier(self, user: Any) -> str:
        return str(user.email)


@lru_cache(maxsize=4)
def _seal(secret: str, older: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in (secret, *older)])


def _derived(secret: str) -> bytes:
    key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"ductor second factors").derive(secret.encode())
    return base64.urlsafe_b64encode(key)
