"""The audit of acts: who did what, when and why."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

from ductor.pages.access import TenantPage
from ductor.pages.forms import ActFilter
from tenants.acts import list_acts
from tenants.permissions import Permission

PAGE = 50
_FILTERS = ("act", "target", "since", "until")


class Audit(TenantPage):
    """The tenant's acts, newest first; filters and position stand in the address."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.AUDIT_READ}
    place = "app-audit"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show a page of acts."""
        form = ActFilter(request.GET)
        if not form.is_valid():
            return self.page("app/audit.html", {"form": form, "acts": []}, status=400)
        try:
            before = UUID(request.GET["before"]) if request.GET.get("before") else None
        except ValueError:
            raise BadRequest from None
        wanted: dict[str, Any] = form.cleaned_data
        acts = list_acts(
            tenant_id=self.tenant_id,
            act=wanted["act"] or None,
            target_id=wanted["target"] or None,
            since=_midnight(wanted["since"], 0),
            until=_midnight(wanted["until"], 1),
            before=before,
            limit=PAGE + 1,
        )
        kept = {name: request.GET[name] for name in _FILTERS if request.GET.get(name)}
        context = {
            "form": form,
            "acts": acts[:PAGE],
            "filtered": bool(kept),
            "more": f"?{urlencode({**kept, 'before': acts[PAGE - 1].id})}" if len(acts) > PAGE else "",
            "first": f"?{urlencode(kept)}" if before else "",
        }
        return self.page("app/audit.html", context)


def _midnight(day: date | None, later: int) -> datetime | None:
    """Return the first moment of a day in UTC, or of the day after it."""
    if day is None:
        return None
    try:
        return datetime.combine(day + timedelta(days=later), time.min, UTC)
    except OverflowError:
        return None
