"""An invitation's pages: the link from the mail, what is offered, and joining.

The link's token goes into the session at once and out of the address: it is in no later address and no referrer.
"""

from allauth.account.models import EmailAddress
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ductor.pages.access import person_of
from ductor.sessions import choose_tenant
from tenants.errors import AlreadyMember, InvitationNotFound
from tenants.invitations import InvitationOffer, accept_invitation
from tenants.people.offers import drop_offer, held_token, hold_offer, offer_of


@require_safe
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the offer behind a link and show it; a link that opens nothing says so, whatever the reason."""
    if hold_offer(request, token) is None:
        return _nothing(request)
    return redirect("app-invitation")


@require_http_methods(["GET", "HEAD", "POST"])
def show(request: HttpRequest) -> HttpResponse:
    """Show the offer that the session holds, or accept it."""
    offer = offer_of(request)
    if offer is None:
        return _nothing(request)
    if request.method == "POST" and request.user.is_authenticated:
        return _accept(request, offer)
    signed_in = request.user.is_authenticated
    context = {"offer": offer, "fits": signed_in and offer.email in _verified(request)}
    return render(request, "app/invitation.html", context)


def _accept(request: HttpRequest, offer: InvitationOffer) -> HttpResponse:
    person = person_of(request)
    try:
        accept_invitation(
            token=held_token(request),
            person_id=person.id,
            name=person.name,
            verified=_verified(request),
            request_id=request.request_id,  # type: ignore[attr-defined]
        )
    except AlreadyMember:
        pass
    except InvitationNotFound:
        return _nothing(request)
    drop_offer(request)
    choose_tenant(request, offer.tenant_id)
    return redirect("app-overview")


def _verified(request: HttpRequest) -> list[str]:
    """Return the addresses that the person has proved."""
    addresses = EmailAddress.objects.filter(user_id=request.user.pk, verified=True)
    return [address.lower() for address in addresses.values_list("email", flat=True)]


def _nothing(request: HttpRequest) -> HttpResponse:
    return render(request, "app/invitation_gone.html", status=404)
