"""`manage.py ductor doctor`"""

from collections import Counter
from dataclasses import asdict

import typer

from ductor.commands.screen import EXIT_ERROR, Json, show
from ductor.diagnosis import examine


def doctor(as_json: Json = False) -> None:
    """Look the platform over: roles, row security, grants, functions, counters, claims. Ends with 1 on a failure."""
    findings = examine()
    verdicts = Counter(finding.verdict for finding in findings)
    show(
        {"healthy": not verdicts["failure"], "findings": [asdict(finding) for finding in findings]},
        rows="findings",
        columns=("check", "verdict", "detail"),
    )
    if verdicts["failure"]:
        raise typer.Exit(EXIT_ERROR)
