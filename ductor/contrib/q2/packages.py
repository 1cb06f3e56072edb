"""From what django-q2 packs to what a task's input holds: JSON and dotted paths, checked before anything is stored.

An input is `{"links": [link, …], "iter_count": n}`. A link is one call; a chain has several, everything else one.
"""

from typing import Any

from django.conf import settings
from django_q.conf import Conf

from ductor.broker import AsyncTaskRefused
from ductor.contrib.q2 import functions
from tenants.identity import new_id
from workflows.errors import InputInvalid
from workflows.values import flaws

Link = dict[str, Any]

_MAX_NAME = 100
_OPTIONS = ("hook", "group", "save", "cached", "timeout", "cluster")
# Options of django-q2 that have no meaning here and are no keyword arguments of the function either.
_IGNORED = ("ack_failure", "iter_cached", "iter_count", "chain", "broker", "sync")


def prepare(sender: object, task: dict[str, Any], **_: Any) -> None:
    """Receiver of `pre_enqueue`: the task's id here becomes its id there, so that both sides show one id.

    Raises:
        AsyncTaskRefused: the caller wants it run in place.
    """
    if task.get("sync"):
        raise _in_place()
    task["id"] = new_id().hex


def read(task: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the first function's path and the input of the Ductor task that stands for a django-q2 task.

    Raises:
        UnknownWorkflow: a function or hook is not among those that may run.
        InputInvalid: an argument is no JSON, or an option has no lawful value; `errors` says where.
    """
    first = _link(task["id"], task["name"], task["func"], task["args"], task["kwargs"], task)
    links = [first]
    for number, element in enumerate(task.get("chain") or [], 1):
        links.append(_chained(element, first, number))
    document: dict[str, Any] = {"links": links}
    count = task.get("iter_count")
    if count is not None:
        if type(count) is not int or count < 1 or len(first["group"] or "") != 32:
            raise _wrong("/iter_count", "a number of calls, in a group of an id's length")
        document["iter_count"] = count
    return first["func"], document


def _chained(element: Any, first: Link, number: int) -> Link:
    """One more link of a chain: `(func, (args), {kwargs})`, where the last two may be absent."""
    function, *rest = element if isinstance(element, tuple | list) else (element,)
    args = rest[0] if rest else ()
    keywords = dict(rest[1]) if len(rest) > 1 else {}
    options = {**keywords.pop("q_options", {})}
    options |= {name: keywords.pop(name) for name in (*_OPTIONS, *_IGNORED) if name in keywords}
    if options.get("sync"):
        raise _in_place()
    name = keywords.pop("task_name", None) or options.get("task_name") or f"{first['name']}-{number + 1}"
    options |= {"group": first["group"], "cached": first["cached"]}
    return _link(new_id().hex, name, function, args, keywords, options)


def _link(id: str, name: str, function: Any, args: Any, kwargs: Any, options: dict[str, Any]) -> Link:
    path = functions.path_of(function)
    hook = options.get("hook")
    group = options.get("group")
    link: Link = {
        "id": id,
        "name": name,
        "func": path,
        "args": list(args),
        "kwargs": dict(kwargs),
        "hook": None if hook is None else functions.path_of(hook),
        "group": None if group in (None, "") else str(group),
        "cluster": options.get("cluster"),
        "cached": bool(options.get("cached", Conf.CACHED)),
        "save": bool(options.get("save", Conf.SAVE_LIMIT >= 0)),
        "timeout": _timeout(options.get("timeout")),
    }
    if found := flaws({"args": link["args"], "kwargs": link["kwargs"]}):
        raise InputInvalid(
            f"The arguments of {path} are not all JSON: pass an object's id and read the object in the function.",
            errors=found,
        )
    for field in ("name", "group", "cluster"):
        if not (link[field] is None or _is_name(link[field])):
            raise _wrong(f"/{field}", f"a text of 1 to {_MAX_NAME} characters without NUL")
    return link


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= _MAX_NAME and not flaws(value)


def _timeout(seconds: Any) -> float | None:
    if seconds in (None, -1):
        return None
    most = settings.DUCTOR_Q2_TIMEOUT_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= most:
        raise _wrong("/timeout", f"seconds above 0 and at most {most:g} (DUCTOR_Q2_TIMEOUT_SECONDS)")
    return float(seconds)


def _in_place() -> AsyncTaskRefused:
    return AsyncTaskRefused(
        "sync=True would run the function past the queue, its limits and its leases; call the function itself."
    )


def _wrong(pointer: str, detail: str) -> InputInvalid:
    return InputInvalid(
        f"An option is not lawful: {pointer[1:]} must be {detail}.",
        errors=[{"pointer": pointer, "code": "out_of_bounds", "detail": detail}],
    )
