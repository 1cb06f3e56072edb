"""The suite's ground: a real, migrated PostgreSQL made by `manage.py test`, and tests that run as a plain role.

The login `ductor_test` is a member of ductor_web and ductor_worker and nothing more: row security binds it. What only
the owner or an operator may do goes through `tests.database.as_role`. Nothing wraps a test in a transaction, since
commits are what is tested; after each test the tables are emptied by the owner.
"""

import json
import os
from collections.abc import Iterator

import pytest

os.environ["DUCTOR_ROLE"] = "test"
if servers := json.loads(os.environ.get("DUCTOR_TEST_SERVERS", "[]")):
    # Each process of the run has the server of its number.
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    os.environ.update(servers[number % len(servers)])
# The processes that tests start note statements in the same file, since they install the same app.
os.environ["DUCTOR_APPS"] = "tests.watching"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ductor.settings")
if "DUCTOR_DATABASE_URL_TEST" not in os.environ:
    raise SystemExit("The suite needs its own server: run `python3 manage.py test`.")

os.environ["DUCTOR_TEST_UNNAMED"] = os.path.join(os.environ["DUCTOR_HOME"], "unnamed-statements")

import django

django.setup()

from tests import clock, database  # noqa: E402


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("DUCTOR_TEST_FULL") != "1":
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("full")])
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_sessionfinish() -> None:
    database.close_owner()


@pytest.fixture(autouse=True)
def clean_tables() -> Iterator[None]:
    """Empty the tables after a test that touched the database, and refuse statements that don't name the tenant."""
    database.begin_test()
    yield
    clock.restore()
    unnamed = database.end_test()
    assert unnamed == [], "statements on tenant tables, or cache keys, that do not name the tenant"
