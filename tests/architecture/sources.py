"""The repository's own files, as the architecture tests read them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ductor", "tenants", "workflows", "ledger", "retention")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*tops: str) -> list[Path]:
    """Return the Python files under these folders of the repository, by path."""
    return sorted(path for top in tops for path in (ROOT / top).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return a file's path as the repository knows it."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(), name_of(path))


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    """Yield every function and method of a file with its dotted name."""
    stack: list[tuple[str, ast.AST]] = [("", tree_of(path))]
    while stack:
        prefix, node = stack.pop()
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, Function | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                if isinstance(child, Function):
                    yield name, child
            stack.append((name, child))
