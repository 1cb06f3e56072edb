"""Programs of PostgreSQL beside the suite's own server, and further databases on it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from ductor import databases, init_db
from ductor.databases import login_settings, psycopg_parameters
from ductor.postgres import binaries


def url_of(role: str, database: str = "") -> str:
    """Return the URL of a role's login, on another database where one is named."""
    parts = urlsplit(os.environ[f"DUCTOR_DATABASE_URL_{role.upper()}"])
    return urlunsplit(parts._replace(path=f"/{database}" if database else parts.path))


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run one of PostgreSQL's programs."""
    command = [str(binaries() / "bin" / program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def connect(url: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(**psycopg_parameters(login_settings(url)), autocommit=True)


@contextmanager
def another_database(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make an empty database as `init-db --no-tables` does, and lead every role's login to it inside the block."""
    admin = os.environ["DUCTOR_TEST_ADMIN_URL"]
    login = login_settings(admin)
    try:
        init_db.prepare({**login, "NAME": name}, trusted=True, tables=False)
        with monkeypatch.context() as patch:
            for role in (*databases.ROLES, "test"):
                patch.setenv(f"DUCTOR_DATABASE_URL_{role.upper()}", url_of(role, name))
            yield
    finally:
        with connect(admin) as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())
