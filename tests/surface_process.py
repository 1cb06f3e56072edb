"""The other end of `tests.surfaces`: one order a line in, one result a line out."""

import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ductor.settings")

import django
from django.conf import settings

# What a password costs is no part of what is tested.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
django.setup()

from django.core import mail  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext, setup_test_environment  # noqa: E402


def request(order: dict[str, Any]) -> dict[str, Any]:
    """Answer a request as this surface answers it."""
    client = Client(SERVER_NAME="localhost", enforce_csrf_checks=True, raise_request_exception=False)
    client.cookies.load(order["cookies"])
    send = getattr(client, order["method"].lower())
    arguments = {} if order["data"] is None else {"data": order["data"]}
    with CaptureQueriesContext(connection) as queries:
        response = send(order["path"], headers=order["headers"], **arguments)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    return {
        "status": response.status_code,
        "headers": {name.lower(): value for name, value in response.headers.items()},
        "text": body.decode(errors="replace"),
        "cookies": {name: morsel.value for name, morsel in response.cookies.items()},
        "queries": [query["sql"] for query in queries.captured_queries],
    }


def call(order: dict[str, Any]) -> Any:
    """Call a function by its name."""
    module, name = order["function"].rsplit(".", 1)
    return getattr(import_module(module), name)(**order["arguments"])


def outbox(order: dict[str, Any]) -> list[dict[str, Any]]:
    """Hand over the mails and forget them."""
    sent = [{"subject": one.subject, "body": one.body, "to": one.to} for one in mail.outbox]
    mail.outbox.clear()
    return sent


def main() -> None:
    """Serve until the pipe closes."""
    # Whatever prints must not end up between two results.
    results, sys.stdout = sys.stdout, sys.stderr
    setup_test_environment()
    doings = {"request": request, "call": call, "outbox": outbox}
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"done": doings[order.pop("do")](order)}
        except Exception:
            answer = {"failed": traceback.format_exc()}
        results.write(json.dumps(answer, default=str) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
