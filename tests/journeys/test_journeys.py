"""The whole way of a person through a browser: a tenant's member, somebody with a passkey, an operator."""

import json
import re
import urllib.request
from typing import Any

from tests.builders import rows
from tests.journeys.stage import PASSWORD, Stage, code, set_up_totp, sign_in

PAT, OLU = "pat@example.com", "olu@example.com"


def start_task(stage: Stage, key: str, gate: str) -> str:
    """Start a task by the API, as a program does; it ends when the file `gate` is there."""
    body = json.dumps({"workflow": "journey-gate", "input": {"file": str(stage.folder / gate)}}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{stage.base}/api/v1/tasks", body, headers)) as answer:
        return str(json.load(answer)["id"])


def test_invited_signed_up_with_totp_a_key_a_task_watched_one_cancelled_and_the_audit_read(
    stage: Stage, page: Any
) -> None:
    stage.ductor("tenants", "create", "acme", "--policy", "default")
    stage.join(page, "acme", PAT)
    secret = set_up_totp(page, stage.base)
    page.goto(f"{stage.base}/app/")
    page.locator("details.menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, stage.base, PAT, code(secret, later=1))
    page.wait_for_url(f"{stage.base}/app/")

    page.get_by_role("link", name="Keys").click()
    page.get_by_label("Name").fill("ci-runner")
    page.get_by_label("tasks:read").check()
    page.get_by_label("tasks:write").check()
    page.get_by_role("button", name="Make a key").click()
    key = page.locator("[data-copy-text]").inner_text()

    page.get_by_role("link", name="Tasks").click()
    watched = start_task(stage, key, "watched")
    page.locator(f"#task-{watched}").click()
    page.locator(".facts .state.leased").wait_for()
    page.evaluate("window.notReloaded = true")
    (stage.folder / "watched").touch()
    page.locator(".facts .state.completed").wait_for()
    page.get_by_text("Finished.").wait_for()
    assert page.evaluate("window.notReloaded") is True
    assert page.locator("table tbody th").inner_text() == "wait_for_file"
    assert "opened" in page.locator("section.value").first.inner_text()
    assert not page.get_by_text("Cancel this task").is_visible()

    mistaken = start_task(stage, key, "never")
    page.goto(f"{stage.base}/app/tasks/{mistaken}/")
    page.get_by_text("Cancel this task…").click()
    page.get_by_label("Reason").fill("started by mistake")
    page.get_by_role("button", name="Cancel the task").click()
    page.get_by_text("The task is cancelled.").wait_for()
    assert page.locator(".facts .state").inner_text() == "cancelled"

    page.get_by_role("link", name="Audit").click()
    acts = page.locator("tbody tr").all_inner_texts()
    assert re.search(rf"{PAT}.*task\.cancel.*{mistaken}.*started by mistake", acts[0].replace("\n", " "))
    assert any("key.create" in act for act in acts) and any("invitation.accept" in act for act in acts)
    assert rows("select count(*) from people_person") == [(1,)]


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


def test_an_operator_signs_in_with_totp_looks_at_the_dashboard_and_cancels_a_task(stage: Stage, page: Any) -> None:
    stage.ductor("tenants", "create", "acme", "--policy", "default")
    key = stage.ductor("keys", "create", "--tenant", "acme", "--scope", "tasks:write")["key"]
    password = stage.ductor("operators", "create", OLU, "--name", "Olu")["password"]
    task = start_task(stage, key, "never")

    page.goto(f"{stage.operators}/admin/")
    page.get_by_label("Email").fill(OLU)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/accounts/reauthenticate/**")
    secret = set_up_totp(page, stage.operators, password)
    page.context.clear_cookies()
    sign_in(page, stage.operators, OLU, code(secret, later=1), password)
    page.goto(f"{stage.operators}/admin/")
    page.get_by_text("Oldest ready").first.wait_for()
    assert "Clusters" in page.locator("main").inner_text()

    page.goto(f"{stage.operators}/admin/t/acme/tasks/{task}/")
    page.get_by_label("Reason").fill("a customer asked")
    page.get_by_role("button", name="Open for 30 minutes").click()
    page.get_by_role("link", name="Cancel").first.click()
    page.get_by_label("Reason").fill("runs away")
    page.locator("main form button").first.click()
    if page.get_by_role("button", name="Cancel the task").is_visible():
        page.get_by_role("button", name="Cancel the task").click()
    page.get_by_text("The task is cancelled.").wait_for()
    assert PASSWORD not in page.content()
