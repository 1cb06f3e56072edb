"""Time under the test's hand: replaces the body of `ductor_now()` in the test database, for all connections."""

from tenants.db.functions import newest_files
from tests.database import owner, touch

_moved = False


def advance(seconds: float) -> None:
    """Let `ductor_now()` run ahead of the real clock by `seconds` more, from now to the end of the test."""
    global _moved, _ahead
    touch()
    _ahead = (_ahead if _moved else 0.0) + seconds
    _moved = True
    owner().execute(
        "create or replace function ductor_now() returns timestamptz language sql volatile parallel safe as "
        f"$$ select clock_timestamp() + interval '{_ahead} seconds' $$"
    )


def freeze(at: str) -> None:
    """Let `ductor_now()` answer exactly `at` (a timestamptz literal) to the end of the test."""
    global _moved, _ahead
    touch()
    _moved, _ahead = True, 0.0
    owner().execute(
        "create or replace function ductor_now() returns timestamptz language sql volatile parallel safe as "
        f"$$ select timestamptz '{at}' $$"
    )


def restore() -> None:
    """Give the real clock back."""
    global _moved
    if _moved:
        owner().execute(newest_files()["ductor_now"].text)
        _moved = False


_ahead = 0.0
