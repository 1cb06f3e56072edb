"""From the invitation's mail to the audit: the whole way of one person through the tenant pages."""

import json
import re
import urllib.request
from typing import Any

from tests.builders import rows
from tests.journeys.stage import Stage, code, set_up_totp, sign_in

PAT = "pat@example.com"


def start_task(stage: Stage, key: str, seconds: float) -> str:
    """Start a task by the API, as a program does."""
    body = json.dumps({"workflow": "chore-nap", "input": {"seconds": seconds}}).encode()
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
    page.evaluate("window.notReloaded = true")
    napping = start_task(stage, key, 2.5)
    page.locator(f"#task-{napping}").wait_for()
    page.locator(f"#task-{napping}").click()
    page.locator("h1", has_text="chore-nap").wait_for()
    page.evaluate("window.notReloaded = true")
    page.locator(".state.completed").first.wait_for()
    assert page.evaluate("window.notReloaded") is True
    assert page.locator(".pulse").inner_text().startswith("Finished.")
    assert page.locator("table tbody th").first.inner_text() == "sleep"
    assert not page.get_by_text("Cancel this task").is_visible()

    long = start_task(stage, key, 50)
    page.goto(f"{stage.base}/app/tasks/{long}/")
    page.get_by_text("Cancel this task…").click()
    page.get_by_label("Reason").fill("started by mistake")
    page.get_by_role("button", name="Cancel the task").click()
    page.get_by_text("The task is cancelled.").wait_for()
    assert page.locator(".facts .state").inner_text() == "cancelled"

    page.get_by_role("link", name="Audit").click()
    acts = page.locator("tbody tr").all_inner_texts()
    assert re.search(rf"{PAT}.*task\.cancel.*{long}.*started by mistake", acts[0].replace("\n", " "))
    assert any("key.create" in act for act in acts) and any("invitation.accept" in act for act in acts)
    assert rows("select count(*) from people_person") == [(1,)]
