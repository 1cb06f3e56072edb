"""Every page × every role: it opens for exactly the roles that the permission table names."""

import re
from pathlib import Path

import pytest
from django.urls import URLPattern

from ductor.pages import urls
from ductor.pages.access import TenantPage
from tenants.permissions import TABLE, Role
from tests.builders import rows
from tests.pages.ground import BEFORE_A_TENANT, addresses, furnish, visitor

PAGES = {
    pattern.name: pattern.callback.view_class for pattern in urls.urlpatterns if hasattr(pattern.callback, "view_class")
}


def test_every_tenant_page_names_a_permission_for_each_method_it_has() -> None:
    assert all(isinstance(pattern, URLPattern) for pattern in urls.urlpatterns)
    assert {pattern.name for pattern in urls.urlpatterns} - set(PAGES) == BEFORE_A_TENANT
    for name, view in PAGES.items():
        assert issubclass(view, TenantPage), name
        has = {method.upper() for method in ("get", "post", "put", "patch", "delete") if hasattr(view, method)}
        assert has == set(view.permissions), name


def test_the_docs_name_every_page_and_its_permissions() -> None:
    rows = re.findall(r"^\| `(/app/[^`]*)` \|.*\| ([^|]*) \|$", Path("docs/tenant-pages.md").read_text(), re.MULTILINE)
    named = {address: set(re.findall(r"`([a-z]+\.[a-z]+)`", needed)) for address, needed in rows}
    assert named.keys() >= {f"/app/{place}" for place in ("", "tasks/", "usage/", "keys/", "members/", "audit/")}
    assert set().union(*named.values()) == {p.value for view in PAGES.values() for p in view.permissions.values()}


@pytest.mark.parametrize("role", [*Role])
def test_a_page_opens_for_the_roles_of_its_permission_and_for_no_other(role: Role) -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, role)
    before = _state()
    for name, address in addresses(furnished).items():
        allowed = PAGES[name].permissions.get("GET")
        wanted = 405 if allowed is None else 200 if role in TABLE[allowed][0] else 403
        assert client.get(address).status_code == wanted, (name, role)
        assert client.head(address).status_code == wanted, (name, role)
    assert _state() == before


@pytest.mark.parametrize("role", [*Role])
def test_an_act_is_refused_to_the_roles_without_its_permission_and_changes_nothing(role: Role) -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, role)
    before, refused = _state(), 0
    for name, address in addresses(furnished).items():
        permission = PAGES[name].permissions.get("POST")
        if permission is not None and role in TABLE[permission][0]:
            continue
        answer = client.post(address, {"name": "x", "email": "x@example.com", "role": "viewer", "scopes": "tasks:read"})
        assert answer.status_code == (405 if permission is None else 403), (name, role)
        refused += 1
    assert refused >= 6
    assert _state() == before


def _state() -> list[object]:
    tables = (
        "workflows_task",
        "tenants_apikey",
        "tenants_member",
        "tenants_invitation",
        "tenants_policy",
        "tenants_act",
    )
    return [rows(f"select * from {table} order by 1, 2") for table in tables]
