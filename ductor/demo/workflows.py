"""`file-audit`: digest, parse and report one Python source file. Real work on real input, three recorded steps."""

import ast
import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ductor import Context, PermanentError, Workflow
from ductor.demo.sources import allowed

MAX_BYTES = 32 * 1024 * 1024
MAX_ERROR = 200


@dataclass
class File:
    """One file to audit: its absolute path, under the standard library or the interpreter's site-packages."""

    path: str


file_audit = Workflow("file-audit", version=1, input=File)


@file_audit.step(timeout="30s")
def digest(ctx: Context[File]) -> dict[str, Any]:
    """SHA-256 and size of the file."""
    content = _read(ctx.input)
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


@file_audit.step(after=digest, timeout="1m")
def parse(ctx: Context[File]) -> dict[str, Any]:
    """Lines, functions and classes; what does not parse is reported as such and is no failure."""
    content = _read(ctx.input)
    counts: dict[str, Any] = {"lines": _lines(content), "functions": 0, "classes": 0, "parse_error": None}
    try:
        with warnings.catch_warnings():
            # Doubtful escapes in somebody else's source are not this task's business.
            warnings.simplefilter("ignore")
            tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return counts | {"parse_error": f"{type(error).__name__}: {error}".replace("\0", "?")[:MAX_ERROR]}
    for node in ast.walk(tree):
        counts["functions"] += isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        counts["classes"] += isinstance(node, ast.ClassDef)
    return counts


@file_audit.step(after=[digest, parse], timeout="10s")
def report(ctx: Context[File]) -> dict[str, Any]:
    """Everything known about the file: the task's output."""
    return {"path": ctx.input.path, **ctx.output(digest), **ctx.output(parse)}


def _read(file: File) -> bytes:
    path: Path | None = allowed(file.path)
    if path is None:
        raise PermanentError("Only Python source files of the standard library and of site-packages are audited.")
    if path.stat().st_size > MAX_BYTES:
        raise PermanentError(f"The file has more than {MAX_BYTES} bytes.")
    return path.read_bytes()


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
