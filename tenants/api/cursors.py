"""Opaque cursors: a place in a list that is ordered by id, signed for one tenant and one list.

A cursor of another tenant, of another list, or one that was changed has no valid signature, so that it can neither
be read nor guessed, and paging never leaves the tenant.
"""

from uuid import UUID

from django.core import signing

from tenants.api.errors import RequestInvalid

_MAX_CHARACTERS = 256


def write_cursor(*, tenant_id: UUID, listing: str, row_id: UUID) -> str:
    """Return the cursor that goes on after the row `row_id` of `listing`."""
    return _signer(tenant_id, listing).sign(row_id.hex)


def read_cursor(text: str, *, tenant_id: UUID, listing: str) -> UUID:
    """Return the row's id that `write_cursor` stored.

    Raises:
        RequestInvalid: the cursor was not written for this tenant and list.
    """
    try:
        if len(text) > _MAX_CHARACTERS:
            raise signing.BadSignature
        row_id = UUID(hex=_signer(tenant_id, listing).unsign(text))
    except signing.BadSignature:
        raise RequestInvalid.parameter("cursor", "cursor", "This cursor belongs to no list of yours.") from None
    return row_id


def _signer(tenant_id: UUID, listing: str) -> signing.Signer:
    return signing.Signer(salt=f"ductor.cursor:{tenant_id}:{listing}")
