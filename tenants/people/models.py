"""The account table, alike on both surfaces."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac

from tenants.identity import new_id


class PersonManager(BaseUserManager["Person"]):
    """Makes people and finds them by their address."""

    def get_by_natural_key(self, username: str | None) -> "Person":
        return self.get(email=(username or "").lower())


class Person(AbstractBaseUser):
    """Somebody who can sign in; the address is kept in lower case and names one person."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(max_length=254, unique=True)
    name = models.CharField(max_length=200, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    # Part of what a session must match: raising it ends every session of the person at its next request.
    session_epoch = models.IntegerField(default=0)

    objects: ClassVar[PersonManager] = PersonManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    def __str__(self) -> str:
        return self.email

    def clean(self) -> None:
        super().clean()
        self.email = self.email.lower()

    def get_full_name(self) -> str:
        """Return how the person is shown."""
        return self.name or self.email

    def end_other_sessions(self, request: HttpRequest) -> None:
        """End every session of the person but the request's own, which gets a new key."""
        type(self).objects.filter(pk=self.pk).update(session_epoch=models.F("session_epoch") + 1)
        self.refresh_from_db(fields=["session_epoch"])
        update_session_auth_hash(request, self)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Answer Django's sign-in: a session with another value is nobody's. The password's hash is part of it."""
        value = f"{self.session_epoch}:{self.password}"
        return salted_hmac("tenants.people.session", value, secret=secret, algorithm="sha256").hexdigest()

    @property
    def is_staff(self) -> bool:
        """Say whether Django's admin lets the person in: everybody of the operator surface's table is an operator."""
        return self.is_active and settings.DUCTOR_ROLE == "operator"

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Answer Django's admin."""
        return self.is_staff

    def has_module_perms(self, app_label: str) -> bool:
        """Answer Django's admin."""
        return self.is_staff
