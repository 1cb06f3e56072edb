"""How django-allauth signs people in here: who may sign up, and how second factors are kept."""

import base64
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as allauth_context
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

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail whose links begin with DUCTOR_BASE_URL, whatever host the request named.

        Anybody may ask for a mail under any host that is served here, a tenant's own domain among them: a link with
        the key of a password must not lead there.
        """
        request, base = allauth_context.request, settings.DUCTOR_BASE_URL
        origins = tuple(f"{scheme}://{request.get_host()}/" for scheme in ("http", "https"))
        led_home = {name: _at(base, value) for name, value in context.items() if str(value).startswith(origins)}
        site = SimpleNamespace(name="Ductor", domain=urlsplit(base).netloc)
        super().send_mail(template_prefix, email, {"current_site": site, **context, **led_home})

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


def _at(base: str, address: str) -> str:
    return base + urlsplit(address)._replace(scheme="", netloc="").geturl()


@lru_cache(maxsize=4)
def _seal(secret: str, older: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in (secret, *older)])


def _derived(secret: str) -> bytes:
    key = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"ductor second factors").derive(secret.encode())
    return base64.urlsafe_b64encode(key)
