"""Acts of operators: seen before they are done, refused without a reason, done by the verbs, kept in the audit."""

from typing import Any

import pytest

from tests.admin.ground import Furnished, furnish, open_door
from tests.builders import assert_counters_true, build_tenant, claim, rows, start
from tests.surfaces import Visitor, operator_surface

ANN = "ann@example.com"


@pytest.fixture
def ann() -> Visitor:
    return operator_surface().operator(ANN)


def acts(name: str) -> list[tuple[Any, ...]]:
    """Return reason, actor and both sides of the operator's acts of a name."""
    return rows(
        "select reason, principal->>'name', before, after from tenants_act"
        " where act = %s and principal->>'kind' = 'operator' and request_id <> '' order by at",
        name,
    )


def everything(tenant: Furnished) -> list[Any]:
    tables = (
        "workflows_task",
        "tenants_load",
        "tenants_policy",
        "tenants_apikey",
        "tenants_member",
        "tenants_invitation",
    )
    return [
        rows(f"select md5(t::text) from {table} t where tenant_id = %s order by 1", tenant.tenant.id)
        for table in tables
    ]


def test_a_policy_is_shown_against_present_use_before_it_is_set(ann: Visitor) -> None:
    tenant = build_tenant("alpha", max_outstanding=100, max_leases=10)
    start(tenant, 8)
    claim(6)
    page = ann.get("/admin/t/alpha/policy/")
    assert 'name="max_outstanding" value="100"' in page.text
    form = {
        "version": 1,
        "max_outstanding": 5,
        "max_leases": 4,
        "weight": 2,
        "guaranteed_leases": 0,
        "reason": "unpaid",
    }
    preview = ann.post("/admin/t/alpha/policy/", form)
    assert preview.status == 200
    for effect in (
        "Unfinished tasks: 100 → 5.",
        "Leases: 10 → 4.",
        "Weight: 1 → 2.",
        "3 more tasks are unfinished than allowed then. None is cancelled",
        "2 more tasks run than allowed then.",
    ):
        assert effect in preview.text, effect
    assert rows("select max_outstanding from tenants_policy where tenant_id = %s", tenant.id) == [(100,)]
    assert acts("policy.set") == []
    assert ann.post("/admin/t/alpha/policy/", {**form, "confirmed": 1}).location == "/admin/t/alpha/"
    limits = "select max_outstanding, max_leases, weight, version from tenants_policy where tenant_id = %s"
    assert rows(limits, tenant.id) == [(5, 4, 2, 2)]
    ((reason, who, before, after),) = acts("policy.set")
    assert (reason, who) == ("unpaid", ANN)
    assert (before["max_outstanding"], after["max_outstanding"]) == (100, 5)
    assert "The policy of alpha is set." in ann.get("/admin/t/alpha/").text
    again = ann.post("/admin/t/alpha/policy/", {**form, "confirmed": 1})
    assert again.status == 412
    assert "has changed since this page was opened" in again.text
    assert len(acts("policy.set")) == 1
    assert_counters_true()


def test_what_a_verb_refuses_is_said_on_the_page(ann: Visitor) -> None:
    build_tenant("alpha")
    form = {"version": 1, "max_outstanding": 5, "max_leases": 4, "weight": 1, "guaranteed_leases": 9, "reason": "x"}
    refused = ann.post("/admin/t/alpha/policy/", {**form, "confirmed": 1})
    assert refused.status == 400
    assert "guaranteed_leases (9) can&#x27;t exceed max_leases (4)." in refused.text
    assert acts("policy.set") == []


def test_freezing_names_what_stands_still_and_is_lifted_the_same_way(ann: Visitor) -> None:
    tenant = build_tenant("alpha")
    form = {"frozen": ["claims", "timers"], "reason": "an incident"}
    preview = ann.post("/admin/t/alpha/freeze/", form)
    assert "Freezes claims." in preview.text
    assert rows("select frozen from tenants_load where tenant_id = %s", tenant.id) == [(0,)]
    assert ann.post("/admin/t/alpha/freeze/", {**form, "confirmed": 1}).status == 302
    assert rows("select frozen from tenants_load where tenant_id = %s", tenant.id) == [(6,)]
    assert "claims, timers" in ann.get("/admin/t/alpha/").text
    ann.post("/admin/t/alpha/freeze/", {"reason": "over", "confirmed": 1})
    assert rows("select frozen from tenants_load where tenant_id = %s", tenant.id) == [(0,)]
    assert [(reason, who) for reason, who, _, _ in acts("tenant.freeze")] == [("an incident", ANN), ("over", ANN)]


def test_a_task_is_cancelled_with_a_reason(ann: Visitor) -> None:
    alpha = furnish("alpha")
    open_door(ann, "alpha")
    path = f"{alpha.path}tasks/{alpha.waiting_id}/cancel/"
    page = ann.get(path)
    assert "Cancels 1 task of alpha" in page.text
    assert "nothing will wake it" in page.text
    assert ann.post(path, {"reason": "asked by the customer"}).status == 302
    assert rows("select state, reason from workflows_task where id = %s", alpha.waiting_id) == [
        ("cancelled", "asked by the customer")
    ]
    ((reason, who, before, after),) = acts("task.cancel")
    assert (reason, who, before, after) == ("asked by the customer", ANN, {"state": "waiting"}, {"state": "cancelled"})
    again = ann.post(path, {"reason": "once more"})
    assert again.status == 409
    assert len(acts("task.cancel")) == 1
    assert_counters_true()


def test_a_key_is_shown_once_and_opens_what_its_scopes_say(ann: Visitor) -> None:
    alpha = furnish("alpha")
    open_door(ann, "alpha")
    path = f"{alpha.path}keys/new/"
    form = {"name": "handed-over", "scopes": ["tasks:read", "tasks:write"], "days": 30, "reason": "first key"}
    assert "Whoever has it acts as the tenant." in ann.post(path, form).text
    made = ann.post(path, {**form, "confirmed": 1})
    assert made.status == 200
    assert "no-store" in made.headers["cache-control"]
    key = made.text.split('class="dk-secret">')[1].split("<")[0]
    assert key not in ann.get(f"{alpha.path}keys/").text
    stored = rows(
        "select scopes, created_by->>'kind', expires_at - created_at < interval '31 days', hashed_key, id"
        " from tenants_apikey where name = 'handed-over'"
    )
    assert [(scopes, kind, soon) for scopes, kind, soon, *_ in stored] == [
        (["tasks:read", "tasks:write"], "operator", True)
    ]
    assert key not in str(stored)
    assert [(reason, who) for reason, who, *_ in acts("key.create")] == [("first key", ANN)]
    assert ann.post(f"{alpha.path}keys/{stored[0][4]}/revoke/", {"reason": "leaked"}).status == 302
    assert rows("select revoked_at is not null from tenants_apikey where name = 'handed-over'") == [(True,)]
    assert [(reason, who) for reason, who, *_ in acts("key.revoke")] == [("leaked", ANN)]


def test_a_tenant_is_made_with_its_policy_and_its_first_owner_invited_by_mail(ann: Visitor) -> None:
    form = {
        "slug": "fresh",
        "name": "Fresh & Co",
        "service_class": "premium",
        "max_outstanding": 50,
        "max_leases": 5,
        "reason": "signed today",
    }
    assert "Its slug can never be used again" in ann.post("/admin/tenants/new/", form).text
    assert rows("select 1 from tenants_tenant where slug = 'fresh'") == []
    assert ann.post("/admin/tenants/new/", {**form, "confirmed": 1}).location == "/admin/t/fresh/"
    made = "select n.service_class, l.max_outstanding, l.max_leases from tenants_tenant n join tenants_load l"
    assert rows(f"{made} on l.tenant_id = n.id where n.slug = 'fresh'") == [("premium", 50, 5)]
    assert [reason for reason, *_ in acts("tenant.create") + acts("policy.set")] == ["signed today"] * 2
    taken = ann.post("/admin/tenants/new/", {**form, "confirmed": 1})
    assert taken.status == 409
    assert "is taken or was used before" in taken.text
    bad = ann.post("/admin/tenants/new/", {**form, "slug": "No Slug", "confirmed": 1})
    assert bad.status == 400
    assert rows("select count(*) from tenants_tenant") == [(2,)]

    operator_surface().outbox()
    invitation = {"email": "Owner@example.com", "role": "owner", "reason": "first owner", "confirmed": 1}
    assert ann.post("/admin/t/fresh/members/invite/", invitation).status == 302
    (mail,) = operator_surface().outbox()
    assert mail["to"] == ["owner@example.com"]
    assert "/app/invitations/" in mail["body"]
    token = mail["body"].split("/app/invitations/")[1].split("/")[0]
    assert token not in ann.get("/admin/t/fresh/").text
    assert rows("select email, role, created_by->>'kind' from tenants_invitation") == [
        ("owner@example.com", "owner", "operator")
    ]
    assert [(reason, who) for reason, who, *_ in acts("invitation.create")] == [("first owner", ANN)]


def test_a_member_and_an_invitation_are_taken_away(ann: Visitor) -> None:
    alpha = furnish("alpha")
    open_door(ann, "alpha")
    path = f"{alpha.path}invitations/{alpha.invitation_id}/revoke/"
    assert ann.post(path, {"reason": "a wrong address"}).status == 302
    assert rows("select revoked_at is not null from tenants_invitation where id = %s", alpha.invitation_id) == [(True,)]
    assert [reason for reason, *_ in acts("invitation.revoke")] == ["a wrong address"]
    last = ann.post(f"{alpha.path}members/{alpha.member_id}/remove/", {"reason": "left"})
    assert last.status == 409
    assert "keeps at least one owner" in last.text
    assert rows("select count(*) from tenants_member where tenant_id = %s", alpha.tenant.id) == [(1,)]


@pytest.mark.parametrize("reason", ["", "  "])
def test_no_act_is_done_without_a_reason(ann: Visitor, reason: str) -> None:
    alpha = furnish("alpha")
    open_door(ann, "alpha")
    before = everything(alpha)
    limits = {"version": 1, "max_outstanding": 5, "max_leases": 4, "weight": 1, "guaranteed_leases": 0}
    tenant = {"slug": "fresh", "service_class": "free", "max_outstanding": 5, "max_leases": 4}
    forms: dict[str, dict[str, Any]] = {
        f"{alpha.path}policy/": limits,
        f"{alpha.path}freeze/": {"frozen": ["claims"]},
        f"{alpha.path}members/invite/": {"email": "x@example.com", "role": "viewer"},
        f"{alpha.path}keys/new/": {"name": "k", "scopes": ["tasks:read"]},
        f"{alpha.path}keys/{alpha.key_id}/revoke/": {},
        f"{alpha.path}members/{alpha.member_id}/remove/": {},
        f"{alpha.path}invitations/{alpha.invitation_id}/revoke/": {},
        f"{alpha.path}tasks/{alpha.waiting_id}/cancel/": {},
        "/admin/tenants/new/": tenant,
    }
    for path, form in forms.items():
        answer = ann.post(path, {**form, "reason": reason, "confirmed": 1})
        assert answer.status == 400, path
    assert everything(alpha) == before
    assert rows("select 1 from tenants_tenant where slug = 'fresh'") == []


def test_nobody_acts_as_the_system(ann: Visitor) -> None:
    for page in (
        "policy/",
        "freeze/",
        "members/invite/",
        "keys/new/",
        f"tasks/{'0' * 8}-0000-7000-8000-{'0' * 12}/cancel/",
    ):
        assert ann.get(f"/admin/t/system/{page}").status == 404
        assert ann.post(f"/admin/t/system/{page}", {"reason": "x", "confirmed": 1}).status == 404
    assert rows("select count(*) from tenants_act where principal->>'kind' = 'operator'") == [(0,)]
