"""How often a step is tried, and the pauses between."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from workflows.durations import Duration, seconds_of

MAX_PAUSE_SECONDS = 7 * 86_400.0
MAX_ATTEMPTS = 1_000
DEFAULT_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a step is tried and how long it pauses between two attempts.

    Args:
        max_attempts: attempts of this step within one task, the first included (1 to 1,000).
        first: the longest pause after the first failure, in seconds or as a text such as "2s".
        factor: what each further failure multiplies that with (1 to 100).
        max: the longest pause at all.

    The pause is drawn evenly between 0 and that bound (full jitter), so that tasks which failed together do not come
    back together.
    """

    max_attempts: int = DEFAULT_FAILURES
    first: Duration = 2.0
    factor: float = 2.0
    max: Duration = "5m"
    first_seconds: float = field(init=False, repr=False, compare=False, default=2.0)
    max_seconds: float = field(init=False, repr=False, compare=False, default=300.0)
    problem: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "first_seconds", seconds_of(self.first, maximum=MAX_PAUSE_SECONDS, zero=True))
            object.__setattr__(self, "max_seconds", seconds_of(self.max, maximum=MAX_PAUSE_SECONDS, zero=True))
            if type(self.max_attempts) is not int or not 1 <= self.max_attempts <= MAX_ATTEMPTS:
                raise ValueError(f"max_attempts must be a whole number from 1 to {MAX_ATTEMPTS}")
            if isinstance(self.factor, bool) or not isinstance(self.factor, int | float) or not 1 <= self.factor <= 100:
                raise ValueError("factor must be a number from 1 to 100")
        except ValueError as error:
            object.__setattr__(self, "problem", str(error))

    def pause(self, failures: int, draw: Callable[[float, float], float] = random.uniform) -> float:
        """Return the seconds to wait after the `failures`-th failure (from 1), drawn by `draw(0, bound)`."""
        # The exponent is bounded: 100 ** 1000 would not fit into a float.
        bound = min(self.max_seconds, self.first_seconds * self.factor ** min(failures - 1, 60))
        return draw(0.0, bound)
