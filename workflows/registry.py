"""All workflows that this process knows, by name and version.

`autodiscover()` imports `workflows.py` of every installed app, like the admin does with `admin.py`; making a
`Workflow` files it here.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflows.definitions import Workflow

_lock = threading.Lock()
_known: "dict[str, dict[int, list[Workflow]]]" = {}


def register(workflow: "Workflow") -> None:
    """File a workflow. A second one of the same name and version is kept too, for the checks to report (E003, E005)."""
    version = workflow.version if type(workflow.version) is int else 0
    with _lock:
        _known.setdefault(str(workflow.name), {}).setdefault(version, []).append(workflow)


def find(name: str, version: int | None = None) -> "Workflow | None":
    """Return the workflow, in its newest version where none is named, or None where this process has none."""
    versions = _known.get(name)
    if not versions:
        return None
    declared = versions.get(max(versions) if version is None else version)
    return declared[0] if declared else None


def get(name: str, version: int | None = None) -> "Workflow":
    """Return the workflow, in its newest version where none is named.

    Raises:
        UnknownWorkflow: this process has no such workflow or version.
    """
    from workflows.errors import UnknownWorkflow

    found = find(name, version)
    if found is None:
        raise UnknownWorkflow(workflow=str(name)[:128], version=version)
    return found


def all() -> "list[Workflow]":
    """Return every workflow that was declared, doubles included, by name and version."""
    with _lock:
        return [w for name in sorted(_known) for version in _known[name] for w in _known[name][version]]


def autodiscover() -> None:
    """Import Ductor's own system workflows and the module `workflows` of every installed app."""
    from django.utils.module_loading import autodiscover_modules

    import_module("workflows.system")
    autodiscover_modules("workflows")


@contextmanager
def isolated() -> Iterator[None]:
    """Start with an empty registry for the block, for tests that declare workflows of their own."""
    global _known
    before, _known = _known, {}
    try:
        yield
    finally:
        _known = before
