"""Ductor: durable workflows for Django and PostgreSQL where the tenant is the security boundary.

What handler authors import stands here and is loaded at first use, so that importing the package needs no Django.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workflows.context import Context
    from workflows.control import Cancelled, PermanentError, RetryLater, StepTimeout
    from workflows.definitions import Workflow
    from workflows.retries import Retry

__all__ = ["Cancelled", "Context", "PermanentError", "Retry", "RetryLater", "StepTimeout", "Workflow"]

_HOMES = {
    "Cancelled": "workflows.control",
    "Context": "workflows.context",
    "PermanentError": "workflows.control",
    "Retry": "workflows.retries",
    "RetryLater": "workflows.control",
    "StepTimeout": "workflows.control",
    "Workflow": "workflows.definitions",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
