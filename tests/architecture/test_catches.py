"""Whatever can happen is caught in one place only; everywhere else an `except` says what it is for.

DESIGN and its style name three places that turn errors into something else: `tenants.store` (SQLSTATE into a typed
error; it names the database's classes), `workflows.execution` (whatever a handler raises into a failure) and
`ductor.problems` (an error into HTTP; Django hands it over). Only a handler can raise anything at all, so only there
does a broad `except` stand. One that raises again at its end hides nothing and is none.
"""

import ast

import pytest

from tests.architecture.sources import PACKAGES, functions, name_of, python_files, tree_of

# Function with a broad catch, and why it may have one; a line that nothing needs fails.
BROAD = {
    "ductor/contrib/q2/results.py::_call_hook": "a hook is a handler, and its failure is a line in the log",
    "ductor/contrib/q2/running.py::_make": "a function of django-q2's is a handler, and its failure is a row",
    "workflows/execution.py::execute": "a handler may raise anything, and its failure is a value",
    "workflows/execution.py::_message": "the __str__ of a handler's exception may raise anything too",
}
EVERYTHING = frozenset({"Exception", "BaseException"})


def names(node: ast.expr | None) -> set[str]:
    """Return the exception names of an `except` or of the arguments of `suppress`."""
    if node is None:
        return {"BaseException"}
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def is_broad(node: ast.AST) -> bool:
    """Say whether a node catches everything and keeps it."""
    if isinstance(node, ast.ExceptHandler):
        last = node.body[-1]
        raises_again = isinstance(last, ast.Raise) and last.exc is None
        return bool(names(node.type) & EVERYTHING) and not raises_again
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        return any(names(argument) & EVERYTHING for argument in node.args)
    return False


def test_everything_is_caught_only_where_a_handler_runs() -> None:
    found = {
        f"{name_of(path)}::{name}"
        for path in python_files(*PACKAGES)
        for name, function in functions(path)
        if any(is_broad(node) for node in ast.walk(function))
    }
    assert found == set(BROAD), "name the exceptions that can come, or let them pass"


def test_no_module_catches_everything_outside_a_function() -> None:
    inside = {id(node) for path in python_files(*PACKAGES) for _, f in functions(path) for node in ast.walk(f)}
    loose = [
        name_of(path)
        for path in python_files(*PACKAGES)
        for node in ast.walk(tree_of(path))
        if is_broad(node) and id(node) not in inside
    ]
    assert loose == []


@pytest.mark.parametrize(
    ("text", "broad"),
    [
        ("try: pass\nexcept Exception: pass", True),
        ("try: pass\nexcept: pass", True),
        ("try: pass\nexcept (ValueError, BaseException) as error: log(error)", True),
        ("with contextlib.suppress(Exception): pass", True),
        ("try: pass\nexcept BaseException:\n    undo()\n    raise", False),
        ("try: pass\nexcept ValueError: pass", False),
        ("with suppress(OSError): pass", False),
    ],
)
def test_the_search_sees_what_it_looks_for(text: str, broad: bool) -> None:
    assert any(is_broad(node) for node in ast.walk(ast.parse(text))) is broad
