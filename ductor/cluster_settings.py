"""django-q2's settings, as a function of the environment. Only the standard library: `settings.py` imports it.

django-q2's own defaults redeliver for ever, acknowledge no failure and let a task run without a limit (`retry` 60,
`max_attempts` 0, `timeout` none). Ductor's correctness rests on leases, not on these, but nothing is left to a default.
"""

import os
from typing import Any


class SettingInvalid(ValueError):
    """An environment variable has a value that can't be used; the message is one line that names it."""


STEP_TIMEOUT_SECONDS = 300
STEP_GRACE_SECONDS = 10


def q_cluster() -> dict[str, Any]:
    """The dict for the setting `Q_CLUSTER`. Raises SettingInvalid when a number is none or out of its range."""
    return {
        "name": "ductor",
        "label": "django-q2",
        "broker_class": "ductor.broker.Broker",
        "cache": "default",
        "workers": number_from("DUCTOR_WORKERS", default=2, least=1, most=256),
        # The sentinel never touches the database; schedules are fired by a task of the system tenant.
        "scheduler": False,
        "save_limit": number_from("DUCTOR_Q2_SAVE_LIMIT", default=10_000, least=0, most=1_000_000_000),
        "max_attempts": 1,
        "ack_failures": True,
        "timeout": STEP_TIMEOUT_SECONDS + STEP_GRACE_SECONDS,
        "retry": 2 * (STEP_TIMEOUT_SECONDS + STEP_GRACE_SECONDS),
        # Below 0.5 django-q2's countdown steps over zero, and a hung worker would live for ever.
        "guard_cycle": 0.5,
        "recycle": number_from("DUCTOR_RECYCLE_TASKS", default=500_000, least=1, most=1_000_000_000),
        # A daemonic process may have no children, and handlers may well want some.
        "daemonize_workers": False,
    }


def q2_timeout() -> float:
    """The longest that a call through django-q2's interface may take, in seconds. Raises SettingInvalid."""
    return seconds_from("DUCTOR_Q2_TIMEOUT_SECONDS", default=STEP_TIMEOUT_SECONDS, least=1, most=86_400)


def seconds_from(variable: str, *, default: float, least: float, most: float) -> float:
    """A number of seconds from the environment. Raises SettingInvalid when it is none or out of range."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.replace(".", "", 1).isdigit() and least <= float(text) <= most):
        raise SettingInvalid(f"{variable} must be a number of seconds from {least:g} to {most:g}, not {text!r}")
    return float(text)


def lease_and_heartbeat() -> tuple[float, float]:
    """The lease and the heartbeat in seconds. Raises SettingInvalid when a lease could run out between two beats."""
    lease = seconds_from("DUCTOR_LEASE_SECONDS", default=60.0, least=0.5, most=3600.0)
    heartbeat = seconds_from("DUCTOR_HEARTBEAT_SECONDS", default=lease / 4, least=0.1, most=1800.0)
    if heartbeat > lease / 2:
        raise SettingInvalid(
            f"DUCTOR_HEARTBEAT_SECONDS ({heartbeat:g}) must be at most half of DUCTOR_LEASE_SECONDS ({lease:g}), "
            "or one late beat loses every lease"
        )
    return lease, heartbeat


def batch() -> int:
    """The most tasks in one claim. Raises SettingInvalid."""
    return number_from("DUCTOR_BATCH", default=100, least=1, most=500)


def check_numbers() -> None:
    """Read every number of this module once. Raises SettingInvalid for the first that can't be used."""
    q_cluster()
    q2_timeout()
    lease_and_heartbeat()
    batch()


def server_processes(surface: str) -> int:
    """The processes of a surface: 2 for the tenants', 1 for the operators'. Raises SettingInvalid for what is none."""
    return number_from("DUCTOR_SERVER_PROCESSES", default=1 if surface == "operator" else 2, least=1, most=64)


def api_rate() -> int:
    """API requests of a tenant in 60 seconds that one server process takes: its share of `DUCTOR_API_RATE`."""
    rate = number_from("DUCTOR_API_RATE", default=60_000, least=1, most=100_000_000)
    return max(1, rate // server_processes("web"))


def number_from(variable: str, *, default: int, least: int, most: int) -> int:
    """A whole number from the environment. Raises SettingInvalid when it is none or out of range."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise SettingInvalid(f"{variable} must be a whole number from {least} to {most}, not {text!r}")
    return int(text)
