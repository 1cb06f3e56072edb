"""The database is away, or refuses: how long to pause, and what of it is worth a line in the log."""

import random

import structlog

log = structlog.get_logger("ductor.cluster")

MAX_PAUSE_SECONDS = 5.0


class Outage:
    """Consecutive failures as seen by one worker."""

    def __init__(self) -> None:
        self.failures = 0
        self.last_line = ""

    def note(self, failure: Exception) -> float:
        """Log the failure if it is news. Returns the pause in seconds: doubled each time, with jitter."""
        line = one_line(failure)
        if line != self.last_line:
            log.warning("turn_failed", why=line)
        self.last_line = line
        self.failures += 1
        return min(MAX_PAUSE_SECONDS, 0.1 * 2 ** min(self.failures, 10)) * random.uniform(0.5, 1.0)  # noqa: S311

    def over(self) -> None:
        if self.failures:
            log.warning("turns_run_again", failures=self.failures)
        self.failures = 0
        self.last_line = ""


def one_line(failure: Exception) -> str:
    """The kind of the failure and the first line of its text: the lines below it may quote a row."""
    text = str(failure).strip()
    return f"{type(failure).__name__}: {text.splitlines()[0] if text else ''}"
