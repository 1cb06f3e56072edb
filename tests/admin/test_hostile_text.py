"""What tenants write is shown as text: in every place where a page of the console shows it."""

import pytest

from tests.admin.ground import furnish, open_door
from tests.builders import PRINCIPAL, start
from tests.surfaces import operator_surface
from workflows.cancelling import cancel

SCRIPT = "</pre><script>alert(1)</script>"
IMAGE = '\'"><img src=x onerror=alert(1) x-data="alert(1)">'


@pytest.mark.parametrize("payload", [SCRIPT, IMAGE])
def test_hostile_input_output_names_and_reasons_are_inert(payload: str) -> None:
    alpha = furnish("alpha", mark=payload)
    (task_id,) = start(alpha.tenant, input={"a": payload})
    cancel(tenant_id=alpha.tenant.id, task_id=task_id, principal=PRINCIPAL, reason=payload)
    visitor = operator_surface().operator()
    open_door(visitor, "alpha", reason=payload)
    pages = {
        "tasks/": 1,
        f"tasks/{alpha.task_id}/": 4,
        f"tasks/{task_id}/": 2,
        f"tasks/{alpha.task_id}/steps/ship/1/": 1,
        "members/": 1,
        "audit/": 2,
    }
    for page, least in pages.items():
        text = visitor.get(alpha.path + page).text
        assert payload not in text, page
        assert "<img src=x" not in text and "<script>alert" not in text, page
        marker = "&lt;script&gt;alert(1)" if payload is SCRIPT else "&lt;img src=x onerror=alert(1)"
        assert text.count(marker) >= least, page


def test_a_filter_that_is_hostile_text_comes_back_as_text() -> None:
    furnish("alpha")
    visitor = operator_surface().operator()
    open_door(visitor, "alpha")
    for path in ("tasks/?workflow=", "tasks/?key=", "audit/?act=", "audit/?target_id="):
        answer = visitor.get(f"/admin/t/alpha/{path}%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
        assert answer.status == 200
        assert "<script>alert" not in answer.text
    assert "<script>alert" not in visitor.get("/admin/tenants/?slug=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text
    assert visitor.get("/admin/t/alpha/tasks/?state=%3Cscript%3E").status == 404
    assert visitor.get("/admin/t/alpha/tasks/?before=%3Cscript%3E").status == 404
