"""axe finds nothing on any page, in light and in dark, and nothing is wider than a small phone (WCAG 2.2 AA)."""

from typing import Any

import pytest

from tests.builders import rows
from tests.journeys.stage import Stage, set_up_totp
from tests.journeys.test_journeys import start_task

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1200, "height": 800}
PLACES = ("", "tasks/", "tasks/?state=failed", "usage/", "keys/", "members/", "audit/", "choose/", "nothing/")
ACCOUNT = ("email/", "password/change/", "2fa/", "2fa/webauthn/", "2fa/webauthn/add/", "2fa/recovery-codes/", "logout/")
STRANGER = ("/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/app/invitations/")


def flaws(page: Any, address: str) -> list[Any]:
    """Open a page and return what is wrong with it."""
    from axe_playwright_python.sync_playwright import Axe

    page.goto(address)
    found: list[Any] = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for violation in Axe().run(page).response["violations"]:
            nodes = [node["html"][:100] for node in violation["nodes"][:2]]
            found.append((address, theme, violation["id"], nodes))
    page.set_viewport_size(PHONE)
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(DESK)
    return [*found, (address, "wide", width)] if width > PHONE["width"] else found


@pytest.mark.full
def test_every_page_of_the_tenant_surface_is_clean(stage: Stage, page: Any, complaints: list[str]) -> None:
    stage.ductor("tenants", "create", "acme", "--policy", "default")
    found = [flaw for address in STRANGER for flaw in flaws(page, stage.base + address)]
    stage.join(page, "acme", "pat@example.com")
    page.goto(f"{stage.base}/app/")
    found += flaws(page, f"{stage.base}/app/tasks/")
    set_up_totp(page, stage.base)
    key = stage.ductor("keys", "create", "--tenant", "acme", "--scope", "tasks:write")["key"]
    (stage.folder / "open").touch()
    running, done = start_task(stage, key, "never"), start_task(stage, key, "open")
    page.goto(f"{stage.base}/app/members/")
    page.get_by_label("E-mail address").fill("new@example.com")
    page.get_by_role("button", name="Send the invitation").click()
    [(member,)] = rows("select id from tenants_member")
    tasks = [f"tasks/{task}/" for task in (running, done)]
    for place in (*PLACES, *tasks, f"members/{member}/remove/"):
        found += flaws(page, f"{stage.base}/app/{place}")
    for place in ACCOUNT:
        found += flaws(page, f"{stage.base}/accounts/{place}")
    assert found == []
    # The pages that are not there say so in the browser's console.
    complaints[:] = [text for text in complaints if "404" not in text]
