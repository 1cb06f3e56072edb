"""People's passwords cost nothing here: how dear a hash is, is Django's own affair."""

from collections.abc import Iterator

import pytest
from django.test import override_settings


@pytest.fixture(autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hash passwords by a hasher that takes no time."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield
