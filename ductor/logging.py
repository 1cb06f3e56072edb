"""Structured logs: one JSON object a line on stderr, for Ductor's own events and for every library's.

A line carries the request id and the tenant's service class (DESIGN D18), never a tenant's payload, a key or a
cookie. Exceptions are written as their class, SQLSTATE and the frames they passed, without their message:
PostgreSQL and Python put values into messages.
"""

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

_WITHHELD = "[withheld]"
_PRIVATE = (
    "authorization",
    "body",
    "cookie",
    "dsn",
    "headers",
    "input",
    "output",
    "params",
    "password",
    "payload",
    "plaintext",
    "presented",
    "secret",
    "sql",
    "token",
)
_EXACT = frozenset({"key", "api_key", "idempotency_key", "hashed_key"})
_MAX_FRAMES = 20
_MAX_CHAIN = 5


def logging_settings(role: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING for a process of `role`.

    Servers and clusters log from INFO (`ductor.asgi` says so for the operator's); a command's screen belongs to its
    answer, so commands log from WARNING, and nothing of a connection that failed: that is their answer then.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    serves = role in ("web", "worker")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": json_formatter, "role": role}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": "INFO" if serves else "WARNING"},
        "loggers": {
            # One line a request is written by ductor.middleware; Django's own ones carry raw paths.
            "django.request": {"level": "CRITICAL"},
            "django.server": {"level": "CRITICAL"},
            # These repeat what a stranger sent (a host name) with a traceback; the request's line has the status.
            "django.security": {"level": "CRITICAL"},
            # At DEBUG this one writes statements with their values.
            "django.db.backends": {"level": "WARNING"},
            "psycopg.pool": {"level": "WARNING" if serves else "CRITICAL"},
        },
    }


def json_formatter(role: str) -> logging.Formatter:
    """Return the formatter that writes any record as one line of JSON."""
    return structlog.stdlib.ProcessorFormatter(
        # What a standard logger was given as `extra`; structlog's own events have their fields already.
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *_shared()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _Named(role),
            structlog.processors.JSONRenderer(default=_class_name),
        ],
    )


def _shared() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        outline_exception,
        withhold_private,
    ]


class _Named:
    """Adds which kind of process speaks."""

    def __init__(self, role: str) -> None:
        self.role = role

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["role"] = self.role
        return event


def outline_exception(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace `exc_info` by the exception's outline."""
    info = event.pop("exc_info", None)
    record = event.get("_record")
    if record is not None and record.exc_info:
        info = record.exc_info
        record.exc_info = None
        record.exc_text = None
    error = info[1] if isinstance(info, tuple) else info
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["exception"] = outline(error)
    return event


def outline(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and its causes as classes, SQLSTATEs and frames; no message, no value."""
    chain: list[dict[str, Any]] = []
    current: BaseException | None = error
    while current is not None and len(chain) < _MAX_CHAIN:
        entry: dict[str, Any] = {"class": f"{type(current).__module__}.{type(current).__qualname__}"}
        sqlstate = getattr(current, "sqlstate", None)
        if sqlstate:
            entry["sqlstate"] = sqlstate
        entry["frames"] = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(current.__traceback__)[-_MAX_FRAMES:]
        ]
        chain.append(entry)
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return chain


def withhold_private(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blank out what must never be in a log, should a caller pass it."""
    for name in event:
        lowered = name.lower()
        if lowered in _EXACT or any(word in lowered for word in _PRIVATE):
            event[name] = _WITHHELD
    return event


def _class_name(value: object) -> str:
    return f"<{type(value).__name__}>"
