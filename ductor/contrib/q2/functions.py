"""Which functions django-q2's interface may run: a list made from code and settings, never from a row.

Each is a workflow `q2:<dotted path>` of one step. A worker runs what its registry holds, so a path that a row names
and this list does not is run by nobody.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import module_has_submodule

from workflows import registry
from workflows.definitions import Workflow
from workflows.errors import UnknownWorkflow
from workflows.retries import Retry

PREFIX = "q2:"
VERSION = 1
MODULE = "tasks"

Function = Callable[..., Any]


class FunctionWorkflow(Workflow):
    """The workflow of one function."""

    def __init__(self, path: str, function: Function) -> None:
        super().__init__(PREFIX + path, version=VERSION, internal=True)
        self.module = function.__module__
        self.function = function
        from ductor.contrib.q2.running import run

        # A failed call is not tried again, as with django-q2's max_attempts of 1; a lost worker's call is.
        self.step("call", retry=Retry(max_attempts=1), timeout=settings.DUCTOR_Q2_TIMEOUT_SECONDS)(run)


def discover() -> None:
    """Allow every public function that `tasks.py` of an app in DUCTOR_APPS defines, and those of DUCTOR_Q2_FUNCTIONS.

    Raises:
        ImproperlyConfigured: the setting names something that is no function.
    """
    for config in apps.get_app_configs():
        listed = any(name == config.name or name.startswith(f"{config.name}.") for name in settings.DUCTOR_APPS)
        if listed and config.module is not None and module_has_submodule(config.module, MODULE):
            allow_module(import_module(f"{config.name}.{MODULE}"))
    for path in settings.DUCTOR_Q2_FUNCTIONS:
        module, _, name = path.rpartition(".")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ImproperlyConfigured(f"DUCTOR_Q2_FUNCTIONS names {path!r}, which can't be imported.") from error
        if not _is_plain(function):
            raise ImproperlyConfigured(f"DUCTOR_Q2_FUNCTIONS names {path!r}, which is no plain function.")
        allow(path, function)


def allow_module(module: ModuleType) -> None:
    """Allow the public functions that a module defines itself; what it imported, and coroutines, stay out."""
    for name, member in vars(module).items():
        if not name.startswith("_") and _is_plain(member) and member.__module__ == module.__name__:
            allow(f"{module.__name__}.{name}", member)


def _is_plain(member: object) -> bool:
    return inspect.isfunction(member) and not inspect.iscoroutinefunction(member)


def allow(path: str, function: Function) -> None:
    """Let django-q2's interface run a function under this dotted path."""
    if registry.find(PREFIX + path, VERSION) is None:
        FunctionWorkflow(path, function)


def find(path: str) -> Function:
    """Return the function of a dotted path.

    Raises:
        UnknownWorkflow: it is not among the allowed ones; the answer says no more, whether it exists or not.
    """
    workflow = registry.find(PREFIX + path, VERSION)
    if not isinstance(workflow, FunctionWorkflow):
        raise UnknownWorkflow(
            f"{path[:200]!r} is none of the functions that may run here: define it in `tasks.py` of an app in "
            "DUCTOR_APPS, or name it in DUCTOR_Q2_FUNCTIONS.",
            workflow=(PREFIX + path)[:128],
            version=VERSION,
        )
    return workflow.function


def path_of(function: object) -> str:
    """Return the dotted path of a function that was given as itself or by its path.

    Raises:
        UnknownWorkflow: it is none that may run here; a method, a lambda or a partial never is.
    """
    if isinstance(function, str):
        find(function)
        return function
    path = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    if find(path) is not function:
        raise UnknownWorkflow(f"{path[:200]!r} is another function than the one that may run under this name.")
    return path
