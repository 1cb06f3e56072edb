"""No module and no function does two duties: DESIGN section 2 counts the lines.

A function's docstring and signature are what its callers read, not what it does; they don't count. SQL functions are
counted by `test_sql.py::test_functions_are_at_most_120_lines`.
"""

import ast

from tests.architecture.sources import PACKAGES, Function, functions, name_of, python_files

MAX_MODULE = 300
MAX_FUNCTION = 40

# What is longer, and why it may be; a line that nothing needs fails.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def body_lines(function: Function) -> int:
    """Return how many lines the body takes, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_modules_are_at_most_300_lines() -> None:
    lengths = {name_of(path): path.read_text().count("\n") for path in python_files(*PACKAGES, "tests")}
    too_long = {name: lines for name, lines in lengths.items() if lines > MAX_MODULE}
    assert set(too_long) == set(LONG_MODULES), too_long


def test_functions_are_at_most_40_lines() -> None:
    lengths = {
        f"{name_of(path)}::{name}": body_lines(function)
        for path in python_files(*PACKAGES)
        for name, function in functions(path)
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION}
    assert set(too_long) == set(LONG_FUNCTIONS), too_long
