"""The states of a task and the moves between them; the SQL verbs make these moves and no others (docs/states.md)."""

from enum import StrEnum


class State(StrEnum):
    """Where a task stands. The same words in the database, the API and the docs."""

    QUEUED = "queued"
    LEASED = "leased"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})

MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.LEASED, State.CANCELLED}),
    State.LEASED: frozenset(
        {State.QUEUED, State.WAITING, State.COMPLETED, State.FAILED, State.CANCELLED},
    ),
    State.WAITING: frozenset({State.QUEUED, State.CANCELLED}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}
