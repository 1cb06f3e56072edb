"""A handler author's table that no role may use is named by `check`, before a handler meets it."""

import pytest
from django.core import checks
from django.test import override_settings

from tenants.checks import check_grants
from tenants.db import grants


def _named(*names: str) -> list[str]:
    with override_settings(DUCTOR_APPS=list(names)):
        found = check_grants()
    assert {(message.id, message.level) for message in found} <= {("ductor.W012", checks.WARNING)}
    return sorted(message.msg.split("'")[1] for message in found)


@pytest.mark.parametrize("name", ["django_q", "django_q.apps.DjangoQConfig"])
def test_tables_that_nobody_lists_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = grants.Grants(tables={"django_q_task": {}})
    monkeypatch.setattr("tenants.checks.declared", lambda: listed)
    assert _named(name) == ["django_q_ormq", "django_q_schedule"]
    listed.tables.update({"django_q_ormq": {}, "django_q_schedule": {}})
    assert _named(name) == []


def test_an_app_is_asked_for_its_own_tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenants.checks.declared", grants.Grants)
    assert _named() == []
    assert _named("ductor.demo", "django") == []
    assert _named("django.contrib.contenttypes") == ["django_content_type"]


def test_the_check_is_part_of_manage_py_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenants.checks.declared", grants.Grants)
    with override_settings(DUCTOR_APPS=["django.contrib.contenttypes"]):
        assert "ductor.W012" in {message.id for message in checks.run_checks(tags=["ductor"])}
