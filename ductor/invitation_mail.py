"""The mail that carries an invitation's link to the invited address, and to nobody else.

Whoever holds the link has proved the address, so it goes by mail alone: no page and no API shows it to the inviter.
Only an operator's own command prints it, where no mail server is named.
"""

from smtplib import SMTPException

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from tenants.invitations import InvitationView

log = structlog.get_logger("ductor.invitations")


def invitation_link(token: str) -> str:
    """Return the address of the page that opens an invitation, on the tenant surface."""
    return f"{settings.DUCTOR_BASE_URL}/app/invitations/{token}/"


def mail_invitation(*, invitation: InvitationView, token: str, tenant: str) -> bool:
    """Send an invitation's link to its address; False where no mail went out, and the log says why.

    `tenant` is how the tenant is named to the invited person. Call it after the verb that made the invitation has
    committed: a mail can't be taken back.
    """
    values = {"invitation": invitation, "tenant": tenant, "link": invitation_link(token)}
    body = render_to_string("mail/invitation.txt", values)
    mail = EmailMessage(f"Invitation to {tenant} on Ductor", body, to=[invitation.email])
    try:
        return mail.send() == 1
    except (SMTPException, OSError) as error:
        log.warning("invitation_mail_failed", error=type(error).__name__, invitation_id=str(invitation.id))
        return False
