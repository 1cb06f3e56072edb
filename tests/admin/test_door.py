"""Who gets in at /admin/ (an operator with a second factor, and nobody else), and who sees what is a tenant's own."""

from uuid import uuid4

import pytest
from django.test import Client

from ductor.console.urls import pages
from tests.admin.ground import furnish, open_door
from tests.builders import rows
from tests.surfaces import operator_surface

_ID = "01a22e4d-09bd-71f7-9f6e-6a875d7540b0"


def _paths() -> list[str]:
    blanks = {"<slug:slug>": "alpha", "<str:item>": _ID, "<str:step>": "ship", "<int:attempt>": "1"}
    found = ["/admin/search/"]
    for pattern, _, _ in pages():
        for blank, value in blanks.items():
            pattern = pattern.replace(blank, value)
        found.append(f"/admin/{pattern}")
    return found


def test_strangers_and_whoever_gave_only_a_password_are_sent_away_from_every_page() -> None:
    furnish("alpha")
    surface = operator_surface()
    stranger, half = surface.visitor(), surface.password_only()
    for path in _paths():
        for method in ("GET", "POST"):
            for visitor, door in ((stranger, "/accounts/login/?next="), (half, "/accounts/2fa/totp/activate/")):
                answer = visitor.ask(
                    method, path, data={"csrfmiddlewaretoken": visitor.token()} if method == "POST" else None
                )
                assert answer.status == 302, (method, path, answer.status)
                assert answer.location.startswith(door), (method, path, answer.location)
                assert not any("tenants_" in query or "workflows_" in query for query in answer.queries), path
    assert rows("select count(*) from tenants_act where principal->>'kind' = 'operator'") == [(0,)]


def test_a_form_without_this_site_s_token_is_refused() -> None:
    furnish("alpha")
    visitor = operator_surface().operator()
    answer = visitor.ask("POST", "/admin/t/alpha/open/", data={"reason": "forged"})
    assert answer.status == 403
    assert rows("select 1 from tenants_act where act = 'tenant.open'") == []


def test_an_operator_who_was_shut_out_is_out_at_the_next_request() -> None:
    surface = operator_surface()
    visitor = surface.operator("gone@example.com")
    assert visitor.get("/admin/").status == 200
    surface.call("tests.admin.looks.shut_out", email="gone@example.com")
    assert visitor.get("/admin/").location.startswith("/accounts/login/")


def test_a_session_of_the_tenant_surface_is_worthless_here_and_there_is_no_console_there() -> None:
    visitor = operator_surface().operator()
    stranger = operator_surface().visitor()
    stranger.cookies["ductor_session"] = visitor.cookies["ductor_operator_session"]
    assert stranger.get("/admin/").location.startswith("/accounts/login/")
    client = Client(SERVER_NAME="localhost")
    client.cookies.load({"ductor_session": visitor.cookies["ductor_operator_session"]})
    assert client.get("/app/").status_code == 302
    for path in _paths():
        assert client.get(path).status_code in (302, 404), path
        assert b"<html" not in client.get(path).content or client.get(path).status_code == 404, path


def test_the_wider_policy_holds_below_admin_only() -> None:
    visitor = operator_surface().operator()
    assert "'unsafe-eval'" in visitor.get("/admin/").headers["content-security-policy"]
    for path in ("/accounts/2fa/", "/accounts/login/", "/admin/t/no-such-tenant/"):
        policy = visitor.get(path).headers.get("content-security-policy", "'unsafe-eval'")
        assert "unsafe" not in policy, path


@pytest.mark.parametrize("page", ["tasks/", "members/", "keys/", "audit/", f"tasks/{_ID}/", "keys/new/"])
def test_s19_what_is_the_tenant_s_own_opens_with_a_reason_for_a_time_and_each_look_is_in_its_audit(page: str) -> None:
    alpha = furnish("alpha")
    visitor = operator_surface().operator("ann@example.com")
    path = alpha.path + page.replace(_ID, str(alpha.task_id))
    shut = visitor.get(path)
    assert shut.location == f"{alpha.path}open/?next={path}"
    assert not any(alpha.mark in query for query in shut.queries)
    for reason in ("", "   "):
        assert visitor.post(f"{alpha.path}open/", {"reason": reason, "next": path}).status == 400
    assert visitor.get(path).status == 302
    assert rows("select 1 from tenants_act where act in ('tenant.open', 'tenant.read')") == []
    assert visitor.post(f"{alpha.path}open/", {"reason": "case 7", "next": path}).location == path
    assert visitor.get(path).status == 200
    acts = rows(
        "select act, reason, principal->>'kind', principal->>'name', target_id, tenant_id from tenants_act"
        " where act in ('tenant.open', 'tenant.read') order by at"
    )
    (opened, read) = acts
    assert opened[:4] == ("tenant.open", "case 7", "operator", "ann@example.com")
    assert read[:4] == ("tenant.read", "", "operator", "ann@example.com")
    assert {act[5] for act in acts} == {alpha.tenant.id}
    assert str(alpha.task_id) in read[4] or page.split("/")[0].rstrip("s") in read[4]


def test_s19_a_door_shuts_by_itself_and_belongs_to_one_session_and_one_tenant() -> None:
    alpha, beta = furnish("alpha"), furnish("beta")
    surface = operator_surface()
    visitor, colleague = surface.operator(), surface.operator()
    open_door(visitor, "alpha")
    assert visitor.get(f"{alpha.path}tasks/").status == 200
    assert visitor.get(f"{beta.path}tasks/").status == 302
    assert colleague.get(f"{alpha.path}tasks/").status == 302
    surface.call("tests.admin.looks.age_doors", seconds=1799 - 60)
    assert visitor.get(f"{alpha.path}tasks/").status == 200
    surface.call("tests.admin.looks.age_doors", seconds=61)
    assert visitor.get(f"{alpha.path}tasks/").status == 302


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/admin/t/alpha/", "/admin/t/beta/", "/app/"]
)
def test_a_door_leads_to_the_tenant_it_opens_and_nowhere_else(wanted: str) -> None:
    furnish("alpha")
    visitor = operator_surface().operator()
    answer = visitor.post("/admin/t/alpha/open/", {"reason": "case 7", "next": wanted})
    assert answer.location == "/admin/t/alpha/"


def test_unknown_tenants_are_not_found() -> None:
    visitor = operator_surface().operator()
    assert visitor.get("/admin/t/nobody/").status == 404
    assert visitor.get(f"/admin/t/{uuid4()}/tasks/").status == 404
