"""What `manage.py ductor doctor` looks at. It only reads.

`catalogue` holds the database's structure against what this code declares: version, roles, row security, grants,
functions, migrations; `surfaces` what keeps operators and tenants apart. `work` looks at the work itself: counters,
faults, leases, snapshots, claims.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from django.db import DatabaseError

from tenants.errors import DuctorError, Unavailable

Verdict = Literal["ok", "warning", "failure"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the diagnosis: what was looked at, how it stands, and what to do where it doesn't stand well."""

    check: str
    verdict: Verdict
    detail: str


def judged(check: str, wrong: list[str], fine: str, *, remedy: str = "", verdict: Verdict = "failure") -> Finding:
    """Return the finding of a check that found the things `wrong`; at most ten are named."""
    if not wrong:
        return Finding(check, "ok", fine)
    named = "; ".join(wrong[:10]) + (f"; and {len(wrong) - 10} more" if len(wrong) > 10 else "")
    return Finding(check, verdict, f"{named}. {remedy}".strip())


def examine() -> list[Finding]:
    """Run every check, each on its own: one that can't be run is a failure and hides no other."""
    from ductor.diagnosis import catalogue, surfaces, work

    findings = []
    for check in (*catalogue.CHECKS, *surfaces.CHECKS, *work.CHECKS):
        try:
            findings.append(check())
        except Unavailable:
            raise
        except (DuctorError, DatabaseError) as error:
            reason = next(iter(str(error).splitlines()), "")
            findings.append(Finding(_name(check), "failure", f"This could not be looked at: {reason}"))
    return findings


def _name(check: Callable[[], Finding]) -> str:
    return check.__name__.replace("_", " ")
