"""Opaque cursors: a place in a list, signed for one tenant and one list.

A cursor of another tenant, of another list, or one that was changed has no valid signature, so that it can neither
be read nor guessed, and paging never leaves the tenant.
"""

from datetime import UTC, datetime
from uuid import UUID

from django.core import signing

from tenants.api.errors import RequestInvalid

_MAX_CHARACTERS = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def write_cursor(*, tenant_id: UUID, listing: str, at: datetime, row_id: UUID) -> str:
    """Return the cursor that continues after the row `(at, row_id)` of `listing`."""
    micros = (at - _EPOCH) // (datetime.resolution)
    return _signer(tenant_id, listing).sign_object([micros, row_id.hex])


def read_cursor(text: str, *, tenant_id: UUID, listing: str) -> tuple[datetime, UUID]:
    """Return the `(at, row_id)` that `write_cursor` stored.

    Raises:
        RequestInvalid: the cursor was not written for this tenant and list.
    """
    try:
        if len(text) > _MAX_CHARACTERS:
            raise signing.BadSignature
        micros, row_hex = _signer(tenant_id, listing).unsign_object(text)
    except signing.BadSignature:
        raise RequestInvalid.parameter("cursor", "cursor", "This cursor belongs to no list of yours.") from None
    return _EPOCH + micros * datetime.resolution, UUID(hex=row_hex)


def _signer(tenant_id: UUID, listing: str) -> signing.Signer:
    return signing.Signer(salt=f"ductor.cursor:{tenant_id}:{listing}")
