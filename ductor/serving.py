"""`python -m ductor.serving web|operator`: one surface, served by granian on one address.

Environment: `DUCTOR_HOST` (127.0.0.1), `DUCTOR_PORT` (8000), `DUCTOR_OPERATOR_PORT` (8001), `DUCTOR_SERVER_PROCESSES`
(2 for the tenants', 1 for the operators'). The operator surface stays on the loopback address unless
`DUCTOR_OPERATOR_HOST` says otherwise.
"""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from granian.constants import Interfaces
from granian.server import Server

from ductor.children import die_with_parent
from ductor.cluster_settings import number_from, server_processes

TARGET = "ductor.asgi"
STOP_SECONDS = 15
PORTS = {"web": ("DUCTOR_PORT", 8000), "operator": ("DUCTOR_OPERATOR_PORT", 8001)}
HOSTS = {"web": "DUCTOR_HOST", "operator": "DUCTOR_OPERATOR_HOST"}


def load_application() -> Callable[..., Any]:
    """Return the ASGI application, in a worker process of the server, which must not outlive the server."""
    die_with_parent()
    application: Callable[..., Any] = import_module(TARGET).application
    return application


def serve(surface: str) -> None:
    """Serve a surface until SIGTERM or SIGINT."""
    os.environ["DUCTOR_ROLE"] = surface
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ductor.settings")
    variable, port = PORTS[surface]
    server = Server(
        TARGET,
        address=os.environ.get(HOSTS[surface], "127.0.0.1"),
        port=number_from(variable, default=port, least=1, most=65535),
        # Django has no lifespan protocol.
        interface=Interfaces.ASGINL,
        workers=server_processes(surface),
        # A handler that hangs may delay the stop so long, not longer.
        workers_kill_timeout=STOP_SECONDS,
        websockets=False,
    )
    server.serve(target_loader=load_application, wrap_loader=False)


def main(arguments: list[str]) -> int:
    """Serve what the command line names; 2 for wrong usage."""
    if len(arguments) != 1 or arguments[0] not in PORTS:
        print("usage: python -m ductor.serving web|operator", file=sys.stderr)
        return 2
    try:
        serve(arguments[0])
    except ValueError as error:
        print(f"ductor: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
