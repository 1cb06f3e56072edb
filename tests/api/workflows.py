"""The workflow that the tests of the faces start."""

from typing import Any

from ductor import Workflow

REVIEW = "faces-review"

review = Workflow(
    REVIEW,
    version=1,
    input={
        "type": "object",
        "properties": {"order": {"type": "integer"}, "note": {}},
        "required": ["order"],
        "additionalProperties": False,
    },
)


@review.step
def look(ctx: Any) -> Any:
    return ctx.input
