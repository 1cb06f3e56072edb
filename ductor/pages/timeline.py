"""A task's time as bars: where it stood, and when each step ran. Numbers for an SVG; the template draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from workflows.queries import TaskView
from workflows.states import State
from workflows.step_queries import StepSummary

# In the units of the drawing, which scales as a whole.
LABELS, WIDTH, ROW, BAR, HEAD = 170, 720, 26, 12, 24
LEAST = 2.0
MAX_BARS = 60
TICKS = 4


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it stands for, and where it is drawn."""

    label: str
    state: str
    seconds: float
    x: float
    y: int
    width: float

    @property
    def middle(self) -> int:
        """The line on which the bar's label stands."""
        return self.y + BAR - 2


@dataclass(frozen=True, slots=True)
class Tick:
    """One mark of the axis."""

    x: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """All bars of one task."""

    bars: Sequence[Bar]
    ticks: Sequence[Tick]
    left_out: int
    seconds: float
    height: int
    width: int = WIDTH
    bar: int = BAR


def draw(task: TaskView, steps: Sequence[StepSummary], now: datetime) -> Timeline | None:
    """Lay a task's steps out from its first start to its end, or to `now` while it runs; None where none has begun.

    The time before the start is told in words: beside hours of waiting, no step would be seen.
    """
    spans = _spans(task, steps, now)
    if not spans:
        return None
    begin, end = min(span[2] for span in spans), max(span[3] for span in spans)
    whole = max((end - begin).total_seconds(), 0.001)
    scale = (WIDTH - LABELS) / whole
    bars = [
        Bar(
            label=label,
            state=state,
            seconds=(until - since).total_seconds(),
            x=min(round(LABELS + (since - begin).total_seconds() * scale, 1), WIDTH - LEAST),
            y=HEAD + index * ROW,
            width=round(max(LEAST, (until - since).total_seconds() * scale), 1),
        )
        for index, (label, state, since, until) in enumerate(spans[:MAX_BARS])
    ]
    ticks = [Tick(round(LABELS + (WIDTH - LABELS) * n / TICKS, 1), whole * n / TICKS) for n in range(TICKS + 1)]
    return Timeline(bars, ticks, max(0, len(spans) - MAX_BARS), whole, HEAD + len(bars) * ROW)


def _spans(task: TaskView, steps: Sequence[StepSummary], now: datetime) -> list[tuple[str, str, datetime, datetime]]:
    spans = []
    for step in steps:
        label = step.name if step.attempt <= 1 else f"{step.name} · attempt {step.attempt}"
        spans.append((label, step.state, step.started_at, step.finished_at))
    if task.state == State.LEASED and task.started_at is not None:
        last = max((step.finished_at for step in steps), default=task.started_at)
        spans.append(("running", State.LEASED.value, last, max(now, last)))
    return spans
