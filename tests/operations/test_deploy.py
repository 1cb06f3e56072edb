"""What runs a surface in production: Django's own deployment check, readiness, and the reasons for what is silenced."""

import os
import subprocess
import sys

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.architecture.sources import ROOT
from tests.builders import rows
from tests.database import owner


@pytest.mark.parametrize("role", ["web", "operator"])
def test_djangos_deployment_check_is_clean_on_both_surfaces(role: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "DEBUG"],
        cwd=ROOT,
        env={**os.environ, "DUCTOR_ROLE": role, "DUCTOR_TLS": "1", "DUCTOR_APPS": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("System check identified no issues")


def test_pages_have_what_the_silenced_checks_miss() -> None:
    page = reverse("account_login")
    shown = Client(SERVER_NAME="localhost").get(page)
    assert "frame-ancestors 'none'" in shown["Content-Security-Policy"]
    forged = Client(SERVER_NAME="localhost", enforce_csrf_checks=True).post(page, {"login": "a@b.c", "password": "x"})
    assert forged.status_code == 403


def test_ready_says_ready() -> None:
    answer = Client(SERVER_NAME="localhost").get("/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


def test_a_surface_whose_tables_are_older_than_its_code_is_not_ready() -> None:
    newest = rows("select app, name, applied from django_migrations where app = 'workflows' order by id desc limit 1")
    owner().execute("delete from django_migrations where app = 'workflows' and name = %s", [newest[0][1]])
    try:
        answer = Client(SERVER_NAME="localhost").get("/health/ready")
        live = Client(SERVER_NAME="localhost").get("/health/live")
    finally:
        owner().execute("insert into django_migrations (app, name, applied) values (%s, %s, %s)", newest[0])
    assert (answer.status_code, answer.json()["reason"]) == (503, "migrations are missing")
    assert live.status_code == 200


def test_a_surface_whose_database_takes_no_writes_is_not_ready() -> None:
    with connection.cursor() as cursor:
        cursor.execute("set default_transaction_read_only = on")
    try:
        answer = Client(SERVER_NAME="localhost").get("/health/ready")
    finally:
        connection.close()
    assert (answer.status_code, answer.json()["reason"]) == (503, "the database takes no writes")
