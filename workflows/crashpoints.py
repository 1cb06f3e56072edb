"""Named places where a test may kill this process: the proofs that nothing is lost or done twice.

`DUCTOR_TEST_CRASH_POINT=after_claim` kills the process by SIGKILL when it first reaches that point, and
`after_claim:3` at the third time. Unset, as in production, `reach` does nothing.
"""

import os
import signal

POINTS = ("after_claim", "before_record", "after_record", "before_finish", "after_finish")

_point, _, _count = os.environ.get("DUCTOR_TEST_CRASH_POINT", "").partition(":")
if _point and _point not in POINTS:
    raise ValueError(f"DUCTOR_TEST_CRASH_POINT={_point!r} is none of {', '.join(POINTS)}")
_left = int(_count or 1)


def reach(name: str) -> None:
    """Die here if this is the point that the environment names."""
    global _left
    if name != _point:
        return
    _left -= 1
    if _left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
