"""Spans of time as handler authors write them: seconds, a timedelta, or a text such as "30s", "5m", "1h30m", "2d"."""

import math
import re
from datetime import timedelta

Duration = float | int | str | timedelta

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)


def seconds_of(span: Duration, *, maximum: float = math.inf, zero: bool = False) -> float:
    """Return `span` in seconds.

    Args:
        span: seconds as a number, a timedelta, or a text of numbers with the units ms, s, m, h, d.
        maximum: the longest span allowed, in seconds.
        zero: whether 0 is allowed.

    Raises:
        ValueError: it is none of these, not finite, negative, zero where zero is not allowed, or above `maximum`.
    """
    seconds = _read(span)
    if seconds is None or not math.isfinite(seconds):
        raise ValueError(f'{span!r} is not a span of time; write seconds or a text such as "30s", "5m", "1h30m", "2d"')
    if seconds < 0 or (seconds == 0 and not zero):
        raise ValueError(f"{span!r} must be {'at least' if zero else 'above'} 0 seconds")
    if seconds > maximum:
        raise ValueError(f"{span!r} is above the longest span allowed here, {maximum:g} seconds")
    return seconds


def _read(span: object) -> float | None:
    if isinstance(span, bool):
        return None
    if isinstance(span, int | float):
        try:
            return float(span)
        except OverflowError:
            return None
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, str) and len(span) <= 64 and _WHOLE.fullmatch(span):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(span))
    return None
