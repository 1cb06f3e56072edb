"""Who a tenant is: slugs, ids, and the reserved system tenant."""

import re
import uuid

import uuid_utils

from tenants.errors import IdentityInvalid, NotFound

SYSTEM_TENANT_ID = uuid.UUID("00000000-0000-7000-8000-000000000000")
SYSTEM_SLUG = "system"
SYSTEM_QUEUE = "system"

RESERVED_SLUGS = frozenset({SYSTEM_SLUG, "public", "postgres", "admin", "www", "api"})
_SLUG = re.compile(r"[a-z][a-z0-9-]{1,47}", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def new_id() -> uuid.UUID:
    """Make a UUIDv7; ids are made here and never chosen by a client."""
    return uuid.UUID(bytes=uuid_utils.uuid7().bytes)


def parse_slug(text: str) -> str:
    """Return `text` if it is a slug that a customer may have.

    Raises:
        IdentityInvalid: it breaks the rule `[a-z][a-z0-9-]{1,47}` or is reserved.
    """
    if not isinstance(text, str) or not _SLUG.fullmatch(text):
        raise IdentityInvalid(
            f"A slug is 2 to 48 of a-z, 0-9 and '-', beginning with a letter; got {text!r}.", seen=str(text)[:64]
        )
    if text in RESERVED_SLUGS:
        raise IdentityInvalid(f"The slug {text!r} is reserved; choose another one.", seen=text)
    return text


def parse_name(text: str, what: str = "name") -> str:
    """Return `text` if it is a portable name: 1 to 128 of letters, digits, `_ . : -`, beginning with a letter.

    Raises:
        IdentityInvalid: it is not; the message says which kind of name (`what`) was meant.
    """
    if not isinstance(text, str) or not _NAME.fullmatch(text):
        raise IdentityInvalid(
            f"A {what} is 1 to 128 of A-Z, a-z, 0-9, '_', '.', ':' and '-', beginning with a letter; got {text!r}.",
            seen=str(text)[:64],
        )
    return text


def parse_id(text: str) -> uuid.UUID:
    """Parse an id as clients see it: a lower-case ASCII UUID.

    Raises:
        NotFound: it is not one. A malformed id gets the answer of an id that never existed.
    """
    if not isinstance(text, str) or not _ID.fullmatch(text):
        raise NotFound
    return uuid.UUID(text)
