"""How many tasks to claim at once: as many as are expected to start within 50 ms, by what handlers took lately.

What is claimed and not started delays somebody else: another worker could have run it, another tenant gone first.
"""

START_SECONDS = 0.050
_NEW_SHARE = 0.5


class Pace:
    """The measured handler time of each lane (queue) of one process."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def size(self, lane: str, most: int) -> int:
        """Return how many tasks to claim, from 1 to `most`; 1 in a lane that is not measured yet."""
        seconds = self._seconds.get(lane)
        if seconds is None:
            return 1
        return max(1, min(most, 1 + int(START_SECONDS / max(seconds, 1e-6))))

    def note(self, lane: str, seconds: float, tasks: int) -> None:
        """Learn from a batch: `tasks` first rounds took `seconds` in all. Half of the new measure counts at once."""
        if tasks:
            known = self._seconds.get(lane)
            each = seconds / tasks
            self._seconds[lane] = each if known is None else known + _NEW_SHARE * (each - known)
