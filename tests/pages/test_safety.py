"""What a page may load, which forms are taken, and what tenants wrote: text and nothing else."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django.utils.html import escape

from tenants.keys import create_api_key
from tests.builders import build_tenant, claim, rows, start
from tests.pages.ground import addresses, furnish, visitor
from tests.people.signing import browser, build_person, join, sign_in
from workflows.claims import Outcome, finish

POLICY = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7|add:7 }}{% now 'Y' %}",
    "</pre></textarea></title><svg onload=alert(1)>",
    "javascript:alert(1)",
    "<div hx-get='/app/keys/' hx-trigger='load'>",
    "\u202egnp.exe",
]
SIGNING_IN = (
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/accounts/logout/",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/recovery-codes/generate/",
)


class Inline(HTMLParser):
    """Collects what a strict policy forbids: scripts with a body, style attributes, handlers, addresses elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Any] = []
        self.tags: set[str] = set()
        self.script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        known = dict(attrs)
        self.script = tag == "script" and known.get("type") != "application/json"
        for name, value in attrs:
            elsewhere = name in ("src", "href", "action") and (value or "").startswith(("http", "//", "javascript:"))
            if name == "style" or name.startswith("on") or elsewhere or name in ("hx-on", "hx-vals"):
                self.found.append((tag, name, value))
        if tag == "style":
            self.found.append((tag, "", ""))

    def handle_data(self, data: str) -> None:
        if self.script and data.strip():
            self.found.append(("script", "", data))

    def handle_endtag(self, tag: str) -> None:
        self.script = False


def test_every_page_has_the_strict_policy_and_nothing_inline() -> None:
    furnished = furnish("alpha")
    client = visitor(furnished.tenant, "owner")
    stranger = browser()
    pages = [(client, address) for address in addresses(furnished).values()]
    pages += [(one, address) for one in (client, stranger) for address in SIGNING_IN]
    pages += [(client, "/app/nothing/"), (stranger, "/app/invitations/nothing/"), (client, "/app/choose/")]
    for one, address in pages:
        answer = one.get(address)
        directives = answer["Content-Security-Policy"].split("; ")
        assert (len(directives), set(directives)) == (len(POLICY), POLICY), address
        assert (answer["X-Content-Type-Options"], answer["Referrer-Policy"]) == ("nosniff", "same-origin"), address
        assert "no-store" in answer["Cache-Control"], address
        if answer.get("Content-Type", "").startswith("text/html"):
            assert Inline(answer.content.decode()).found == [], address


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_tenant_wrote_is_text_on_every_page(text: str) -> None:
    tenant = build_tenant()
    [task] = start(tenant, input={text: [text]}, key="k")
    [one] = claim()
    finish(outcomes=[Outcome(one.claim, "failed", error={"class": text, "message": text}, failure=True)])
    _, owner = join(tenant, "owner", build_person("owner@example.com"))
    create_api_key(tenant_id=tenant.id, name="plain", scopes=["tasks:read"], principal=owner)
    client = visitor(tenant, "owner")
    client.post(f"/app/tasks/{task}/cancel/", {"reason": text})
    rows("update tenants_member set name = %s returning 1", text)
    whole = ""
    for address in ("/app/", "/app/tasks/", f"/app/tasks/{task}/", "/app/members/", "/app/keys/", "/app/audit/"):
        content = client.get(address).content.decode()
        assert Inline(content).found == [], address
        whole += content
    assert "<" not in text or text not in whole
    assert escape(text.replace('"', '\\"')) in whole


def test_a_task_s_value_is_a_download_and_no_page() -> None:
    furnished = furnish("alpha")
    answer = visitor(furnished.tenant, "viewer").get(f"/app/tasks/{furnished.task}/input.json")
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"] == f'attachment; filename="{furnished.task}-input.json"'
    assert answer.json() == {"note": "input-alpha"}
    assert visitor(furnished.tenant, "viewer").get(f"/app/tasks/{furnished.task}/origin.json").status_code == 404


def test_a_form_without_this_site_s_token_is_refused_and_moves_nothing() -> None:
    furnished = furnish("alpha")
    person = build_person("owner@example.com")
    join(furnished.tenant, "owner", person)
    client = visitor(furnished.tenant, "owner", enforce_csrf_checks=True)
    before = _state()
    forms = [address for name, address in addresses(furnished).items()] + ["/app/choose/", "/accounts/logout/"]
    for address in forms:
        answer = client.post(address, {"reason": "forged", "name": "x", "scopes": "tasks:read"})
        assert answer.status_code == 403, address
        assert "may not do that" in answer.content.decode(), address
    assert _state() == before
    assert client.get("/app/").status_code == 200


def test_a_key_opens_no_page_and_a_session_no_api() -> None:
    furnished = furnish("alpha")
    person = build_person("owner@example.com")
    _, principal = join(furnished.tenant, "owner", person)
    _, key = create_api_key(tenant_id=furnished.tenant.id, name="k", scopes=["tasks:read"], principal=principal)
    bearer = {"Authorization": f"Bearer {key}"}
    assert browser().get("/app/tasks/", headers=bearer).status_code == 302
    signed_in = sign_in(person)
    assert signed_in.get("/app/choose/").status_code == 302
    assert signed_in.get("/app/tasks/").status_code == 200
    assert signed_in.get("/api/v1/tasks").status_code == 401
    assert signed_in.get("/api/v1/tasks", headers=bearer).status_code == 200


def _state() -> list[Any]:
    tables = ("workflows_task", "tenants_apikey", "tenants_member", "tenants_invitation", "tenants_act")
    return [rows(f"select * from {table} order by 1, 2") for table in tables]
