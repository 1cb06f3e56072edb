"""A passkey: added once, and then the whole sign-in by itself."""

from typing import Any

from tests.journeys.stage import PASSWORD, Stage

PAT = "pat@example.com"


def virtual_authenticator(page: Any) -> None:
    """Plug a security device in that says yes to everything, as the DevTools protocol offers it."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_a_person_adds_a_passkey_and_signs_in_with_nothing_else(stage: Stage, page: Any) -> None:
    stage.ductor("tenants", "create", "acme", "--policy", "default")
    virtual_authenticator(page)
    stage.join(page, "acme", PAT)
    page.goto(f"{stage.base}/accounts/2fa/webauthn/add/")
    if "reauthenticate" in page.url:
        page.locator("[name=password]").fill(PASSWORD)
        page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Name").fill("this laptop")
    page.get_by_label("Passwordless").check()
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/accounts/2fa/recovery-codes/**")
    page.get_by_label("I have saved my recovery codes").check()
    page.goto(f"{stage.base}/accounts/2fa/webauthn/")
    assert page.locator("tbody tr").inner_text().split("\t")[:2] == ["this laptop", "passkey"]
    page.context.clear_cookies()
    page.goto(f"{stage.base}/app/tasks/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(f"{stage.base}/app/tasks/")
    assert "No tasks yet" in page.locator("main").inner_text()
