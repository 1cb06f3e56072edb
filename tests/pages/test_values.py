"""How values look on pages."""

import pytest

from ductor.templatetags.pages import meter, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (-1.0, "0 ms"),
        (0, "0 ms"),
        (0.0014, "1.4 ms"),
        (0.25, "250 ms"),
        (1, "1.0 s"),
        (59.94, "59.9 s"),
        (60, "1 min 0 s"),
        (3_599.6, "1 h 0 min"),
        (90_061, "1 d 1 h"),
        (31_536_000, "365 d 0 h"),
    ],
)
def test_a_span_has_at_most_two_units(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("used", "limit", "share", "level"),
    [(0, 10, 0, "free"), (7, 10, 70, "free"), (8, 10, 80, "near"), (10, 10, 100, "full"), (12, 10, 100, "full")],
)
def test_a_meter_says_where_it_gets_tight(used: int, limit: int, share: int, level: str) -> None:
    shown = meter("Leases", used, limit)
    assert (shown["share"], shown["level"]) == (share, level)
