"""Parts of the operator console's pages."""

from datetime import UTC, datetime
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from tenants.standings import NEAR
from workflows.states import State

register = template.Library()

_LOOKS = {State.COMPLETED: "good", State.FAILED: "bad", State.CANCELLED: "cold", State.LEASED: "warm"}
_SIGNS = {State.COMPLETED: "✓", State.FAILED: "✕", State.CANCELLED: "⊘", State.LEASED: "▶", State.WAITING: "◷"}


@register.simple_tag(takes_context=True)
def tab(context: template.Context, page: str, title: str) -> SafeString:
    """A link to one of the pages of the shown tenant, marked where it is the present one."""
    address = reverse(f"admin:{page}", args=[context["tenant"].slug])
    here = context["request"].path
    current = here == address or (page != "tenant" and here.startswith(address))
    return format_html('<a href="{}"{}>{}</a>', address, format_html(' aria-current="page"') if current else "", title)


@register.simple_tag
def at(moment: datetime | None) -> SafeString:
    """A moment in UTC; live.js adds how long ago that is."""
    if moment is None:
        return format_html("<span>–</span>")
    utc = moment.astimezone(UTC)
    return format_html('<time datetime="{}">{}</time>', utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S}")


@register.simple_tag
def use(used: int | None, limit: int | None) -> SafeString:
    """Use against a limit: the numbers, a bar, and a word where it gets tight."""
    if used is None or limit is None:
        return format_html('<span class="dk-quiet">no policy</span>')
    share = 1.0 if limit <= 0 else min(1.0, used / limit)
    look, word = ("bad", "full") if share >= 1 else ("warm", "near") if share >= NEAR else ("good", "")
    return format_html(
        '<span class="dk-use"><meter min="0" low="0.8" high="0.999" max="1" optimum="0" value="{}"'
        ' aria-label="{} of {}"></meter> {} of {}{}</span>',
        f"{share:.3f}",
        used,
        limit,
        f"{used:,}",
        f"{limit:,}",
        format_html(' <span class="dk-pill dk-{}">{}</span>', look, word) if word else "",
    )


@register.simple_tag
def state_of(state: Any) -> SafeString:
    """A state as sign, word and colour."""
    return format_html(
        '<span class="dk-pill dk-{}"><span aria-hidden="true">{}</span> {}</span>',
        _LOOKS.get(state, "plain"),
        _SIGNS.get(state, "•"),
        state,
    )
