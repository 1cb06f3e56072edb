"""Sessions that have run out are removed a few at a time, by those who sign in: no process of its own is needed."""

from typing import Any

from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.dispatch import receiver
from django.utils import timezone

# More than one person's browsing leaves behind, so that the table shrinks wherever anybody signs in.
MAX_REMOVED = 500


@receiver(user_logged_in, dispatch_uid="ductor-expired-sessions")
def remove_expired_sessions(**_: Any) -> None:
    """Remove up to MAX_REMOVED sessions whose time is over, those of this surface's own table."""
    expired = Session.objects.filter(expire_date__lt=timezone.now()).order_by("expire_date")
    keys = list(expired.values_list("pk", flat=True)[:MAX_REMOVED])
    Session.objects.filter(pk__in=keys).delete()
