"""What tests have done inside the operator surface's own process, by `Surface.call`."""

import time
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing

from tenants.people.models import Person


def open_session(email: str, records: list[dict[str, Any]] | None = None, records_of: str = "") -> str:
    """Sign somebody in as Django's own `login()` does, past django-allauth; returns the session's key."""
    person = Person.objects.get(email=email)
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    if records:
        store["account_authentication_methods"] = [{"at": time.time(), **record} for record in records]
        store["account_authentication_methods_user"] = str(Person.objects.get(email=records_of or email).pk)
    store.create()
    return str(store.session_key)


def give_totp(email: str) -> str:
    """Let an operator have a second factor; returns its secret."""
    secret = str(generate_totp_secret())
    TOTP.activate(Person.objects.get(email=email), secret)
    return secret


def give_passkey(email: str) -> None:
    """Let an operator have a passkey, whose key nobody holds."""
    Authenticator.objects.create(
        user=Person.objects.get(email=email), type=Authenticator.Type.WEBAUTHN, data={"name": "k", "credential": {}}
    )


def give_recovery_codes(email: str) -> None:
    """Let an operator have recovery codes and nothing else."""
    RecoveryCodes.activate(Person.objects.get(email=email))


def opened(sealed: str) -> str:
    """Open a second factor's sealed secret with this surface's key; 'refused' where that fails."""
    from cryptography.fernet import InvalidToken

    from tenants.people.adapters import SealedMFAAdapter

    try:
        return SealedMFAAdapter().decrypt(sealed)
    except InvalidToken:
        return "refused"


def loaded(signed: str) -> Any:
    """Take what was signed with this surface's key; 'refused' for any other."""
    try:
        return signing.loads(signed)
    except signing.BadSignature:
        return "refused"


def cookie_settings() -> dict[str, Any]:
    """Say how this surface's cookies are named and kept."""
    names = ("SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SAMESITE", "SESSION_COOKIE_HTTPONLY")
    return {name: getattr(settings, name) for name in names}


def take_factors(email: str) -> None:
    """Take an operator's second factors away, as the owner of the account may."""
    Authenticator.objects.filter(user__email=email).delete()


def routes() -> list[str]:
    """Return the path of every route of this surface; a converter's place holds an x."""
    import re

    from django.urls import URLResolver, get_resolver

    def walk(patterns: Any, prefix: str) -> Any:
        for pattern in patterns:
            path = prefix + re.sub(r"<[^>]+>", "x", str(pattern.pattern)).lstrip("^")
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, path)
            else:
                yield path

    return sorted(walk(get_resolver().url_patterns, "/"))
