"""What `up` was asked to do."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The flags of `up`."""

    once: bool
    demo: bool
    reset: bool
    yes: bool
    port: int
    operator_port: int
    workers: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags to a parser."""
    parser.add_argument("--once", action="store_true", help="run the demo job, print its table and end")
    parser.add_argument("--no-demo", action="store_true", help="neither demo tenants nor demo job")
    parser.add_argument("--reset", action="store_true", help="remove the embedded database first (asks)")
    parser.add_argument("--yes", action="store_true", help="answer yes to --reset")
    parser.add_argument("--port", type=_port, default=8000, help="tenant surface (%(default)s)")
    parser.add_argument("--operator-port", type=_port, default=8001, help="operator surface (%(default)s)")
    parser.add_argument("--workers", type=_workers, default=None, help="worker processes (DUCTOR_WORKERS, 2)")


def read(arguments: Sequence[str]) -> Options:
    """Read a command line; wrong usage ends the process with 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="manage.py up",
        description="Prepare the database, start both surfaces and a cluster, and show them at work on a demo job.",
    )
    add_arguments(parser)
    found = parser.parse_args(arguments)
    if found.port == found.operator_port:
        parser.error("--port and --operator-port must differ")
    return Options(
        once=found.once,
        demo=not found.no_demo,
        reset=found.reset,
        yes=found.yes,
        port=found.port,
        operator_port=found.operator_port,
        workers=found.workers,
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 256):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of workers from 1 to 256")
    return int(text)
