"""Formats of what is stored: a number beside it says by which rules it is to be read.

A Ductor that meets a higher number than its own was rolled back, or runs beside a newer one. It leaves such rows as
they are: it neither reads them as something they are not, nor writes over them.
"""

from typing import Any

from workflows.errors import FormatUnknown

# Raised together with the first change that an older Ductor would misread.
TASK_FORMAT = 1
DEFINITION_FORMAT = 1


def known_definition(graph: Any, *, workflow: str, version: int) -> Any:
    """Return a stored definition's document if this Ductor can read it.

    Raises:
        FormatUnknown: it is of a newer format, or it has none.
    """
    found = graph.get("format") if isinstance(graph, dict) else None
    if type(found) is not int or not 1 <= found <= DEFINITION_FORMAT:
        raise FormatUnknown(workflow=workflow, version=version, format=found)
    return graph
