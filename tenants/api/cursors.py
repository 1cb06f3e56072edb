"""Opaque cursors: a place in a list (the id or name of its last row), signed for one tenant and one list.

A cursor of another tenant, of another list, or one that was changed has no valid signature, so that it can neither
be read nor guessed, and paging never leaves the tenant.
"""

from uuid import UUID

from django.core import signing

from tenants.api.errors import RequestInvalid

_MAX_CHARACTERS = 256


def write_cursor(*, tenant_id: UUID, listing: str, place: UUID | str) -> str:
    """Return the cursor that goes on after the row at `place` of `listing`."""
    return _signer(tenant_id, listing).sign(place.hex if isinstance(place, UUID) else place)


def read_cursor(text: str, *, tenant_id: UUID, listing: str) -> str:
    """Return the place that `write_cursor` stored: an id as 32 hex digits, or a name.

    Raises:
        RequestInvalid: the cursor was not written for this tenant and list.
    """
    try:
        if len(text) > _MAX_CHARACTERS:
            raise signing.BadSignature
        return _signer(tenant_id, listing).unsign(text)
    except signing.BadSignature:
        raise RequestInvalid.parameter("cursor", "cursor", "This cursor belongs to no list of yours.") from None


def _signer(tenant_id: UUID, listing: str) -> signing.Signer:
    return signing.Signer(salt=f"ductor.cursor:{tenant_id}:{listing}")
