"""Which files the demo may read: Python sources of the standard library and of the interpreter's site-packages."""

import os
import sysconfig
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path

_SKIPPED = frozenset({"__pycache__", "site-packages", "dist-packages"})


@cache
def roots() -> tuple[Path, ...]:
    """Return the folders whose files may be audited, resolved: standard library first."""
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys(Path(paths[name]).resolve() for name in ("stdlib", "purelib", "platlib")))


def allowed(path: str) -> Path | None:
    """Return the real file behind `path`, or None where it is no Python source file under one of the folders."""
    try:
        real = Path(path).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None
    inside = any(real.is_relative_to(root) for root in roots())
    return real if inside and real.suffix == ".py" and real.is_file() else None


def source_files(limit: int) -> list[str]:
    """Return up to `limit` source files: the same ones in the same order at each call on the same machine."""
    return list(islice(_sources(), limit))


def _sources() -> Iterator[str]:
    for root in roots():
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED)
            for name in sorted(names):
                path = os.path.join(folder, name)
                # A link may lead out of the folder, or name one file twice.
                if name.endswith(".py") and not os.path.islink(path) and allowed(path) is not None:
                    yield path
