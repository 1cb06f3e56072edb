"""The invitation that a visitor's session holds, from its link until it is accepted."""

from django.http import HttpRequest

from tenants.invitations import InvitationOffer, find_invitation

_HELD = "ductor_invitation"


def hold_offer(request: HttpRequest, token: str) -> InvitationOffer | None:
    """Look an invitation up by the token of its link and keep it in the session; None for one that does not stand."""
    offer = find_invitation(token=token)
    if offer is None:
        request.session.pop(_HELD, None)
    else:
        request.session[_HELD] = token
    return offer


def held_token(request: HttpRequest) -> str:
    """Return the token that the session holds, or ''."""
    return str(request.session.get(_HELD, ""))


def offer_of(request: HttpRequest) -> InvitationOffer | None:
    """Return the invitation that the session holds, if it still stands."""
    token = held_token(request)
    return find_invitation(token=token) if token else None


def drop_offer(request: HttpRequest) -> None:
    """Forget the session's invitation."""
    request.session.pop(_HELD, None)
