"""How pages show values: times, spans, JSON. All text; templates escape it."""

import json
from datetime import UTC, datetime
from typing import Any

from django import template
from django.conf import settings

from workflows.states import State

register = template.Library()

# What a page shows of one value; the rest is a download away.
MAX_SHOWN = 20_000

_STATES = frozenset(state.value for state in State)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@register.inclusion_tag("components/state.html")
def state(value: str) -> dict[str, str]:
    """Show a state as icon, word and colour."""
    return {"state": value, "icon": value if value in _STATES else "unknown"}


@register.inclusion_tag("components/moment.html")
def moment(at: datetime | None) -> dict[str, Any]:
    """Show a time: exact in UTC; times.js adds how long ago that was."""
    if at is None:
        return {"at": None}
    return {"at": at, "machine": at.astimezone(UTC).isoformat(), "text": f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"}


@register.inclusion_tag("components/meter.html")
def meter(label: str, used: int, limit: int) -> dict[str, Any]:
    """Show use against a limit: bar, numbers, and a word where it gets tight."""
    share = 100 if limit <= 0 else min(100, round(used * 100 / limit))
    level = "full" if used >= limit else "near" if share >= 80 else "free"
    return {"label": label, "used": used, "limit": limit, "share": share, "level": level}


@register.filter
def span(seconds: float | None) -> str:
    """Show a span of seconds in at most two units."""
    if seconds is None:
        return "–"
    if 0 < seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for index, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            lesser, name = _UNITS[index + 1] if index + 1 < len(_UNITS) else (1, "s")
            return f"{whole // size} {unit} {whole % size // lesser} {name}"
    return f"{whole} s"


@register.filter
def pretty(value: Any) -> str:
    """Show a JSON value over lines, cut where it grows long."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "\n…"


@register.filter
def is_cut(value: Any) -> bool:
    """Say whether `pretty` left something out."""
    return len(json.dumps(value, indent=2, ensure_ascii=False)) > MAX_SHOWN


@register.filter
def words(name: str) -> str:
    """Show a name of the code as words."""
    return str(name).replace("_", " ").replace(".", " · ")


@register.simple_tag
def operator_surface() -> bool:
    """Say whether this process serves operators: the pages of signing in are the same on both surfaces."""
    return bool(settings.DUCTOR_ROLE == "operator")
