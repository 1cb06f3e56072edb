"""The account table, alike on both surfaces."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils import timezone

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
