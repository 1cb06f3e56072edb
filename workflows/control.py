"""What a handler may raise to steer its task, and what the engine raises inside a handler to stop it."""

import asyncio

from workflows.durations import seconds_of

MAX_RETRY_LATER_SECONDS = 366 * 86_400.0


class PermanentError(Exception):
    """Raised by a handler: no further attempt can succeed, so the task fails now."""


class RetryLater(Exception):
    """Raised by a handler: run this step again after a pause, which is not a failure and costs no attempt.

    `after` is in seconds, or a text such as "30s" or "5m"; at most 366 days.

    Raises:
        ValueError: `after` is not such a span.
    """

    def __init__(self, after: float | str) -> None:
        self.after_seconds = seconds_of(after, maximum=MAX_RETRY_LATER_SECONDS)
        super().__init__(f"again in {self.after_seconds:g} s")


class Interrupted(asyncio.CancelledError, SystemExit):
    """The engine stops a running handler.

    Not an Exception, so that a handler's `except Exception` does not swallow it. psycopg answers a SystemExit by
    cancelling the statement in the server, so that an interrupted query leaves no lock behind; asyncio takes a
    CancelledError as what it is.
    """


class StepTimeout(Interrupted):
    """The step ran longer than its timeout."""


class Cancelled(Interrupted):
    """The task was cancelled or its lease was lost; whatever the handler returns now is not written."""
