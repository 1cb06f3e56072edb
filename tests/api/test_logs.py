"""Logs (S21): the request's id and class on each line; no payload, key, cookie, path or query anywhere."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from ductor.logging import json_formatter
from tests.api.callers import TASKS, build_caller, client
from tests.api.workflows import REVIEW
from tests.builders import rows
from workflows.api import views

MARK = "zebra-marker"


@contextmanager
def _logged(level: int = logging.DEBUG) -> Iterator[list[dict[str, Any]]]:
    """Collect every line that a process's log would hold, from every library."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(json_formatter("web"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    lines: list[dict[str, Any]] = []
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_writes_one_line_with_its_id_view_status_and_class() -> None:
    caller = build_caller(service_class="premium")
    with _logged(logging.INFO) as lines:
        answer = caller.start()
    [line] = [line for line in lines if line["logger"] == "ductor.requests"]
    shown = {name: line[name] for name in ("event", "method", "view", "status", "service_class", "request_id")}
    assert shown == {
        "event": "request",
        "method": "POST",
        "view": "tasks",
        "status": 201,
        "service_class": "premium",
        "request_id": answer["X-Request-Id"],
    }
    assert line["milliseconds"] > 0


def test_nothing_that_a_tenant_sends_or_owns_is_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = build_caller()
    note = {"order": 1, "note": MARK}
    with _logged() as lines:
        started = caller.post(
            body={"workflow": REVIEW, "input": note, "key": f"{MARK}-key"},
            Cookie=f"session={MARK}-cookie",
            X_Other=f"{MARK}-header",
        )
        path = f"{TASKS}/{started.json()['id']}"
        caller.get(f"{path}?wait=0")
        caller.get(f"{TASKS}?key={MARK}-key")
        caller.get(f"{TASKS}?{MARK}=1")
        caller.get(f"/api/v1/{MARK}")
        caller.post(body=f'{{"workflow": "{MARK}", "x": NaN'.encode())
        caller.post(body={"workflow": REVIEW, "input": {"order": MARK}})
        caller.post(body={"workflow": REVIEW, "input": {"order": 2}, "key": f"{MARK}-key"})
        caller.post(f"{path}/cancel", {"reason": f"{MARK}-reason"})

        def broken(**_: Any) -> Any:
            raise ValueError(f"{MARK} in an exception")

        monkeypatch.setattr(views, "list_summaries", broken)
        caller.get()
    assert started.status_code == 201
    assert rows("select count(*) from workflows_task where input ->> 'note' = %s", MARK) == [(1,)]
    text = json.dumps(lines)
    secret = caller.key.partition(".")[2]
    for forbidden in (MARK, caller.key, secret, caller.tenant.slug, str(caller.tenant.id), "Bearer", "Cookie"):
        assert forbidden not in text, forbidden
    assert len([line for line in lines if line["logger"] == "ductor.requests"]) == 10
    [fault] = [line for line in lines if line["event"] == "fault"]
    assert fault["exception"][0]["class"] == "builtins.ValueError"
    assert any("test_logs.py" in frame for frame in fault["exception"][0]["frames"])
    assert {line["request_id"] for line in lines if line["logger"].startswith("ductor")} != {""}


def test_a_refused_host_name_is_one_line_without_the_name() -> None:
    with _logged() as lines:
        answer = client(f"{MARK}.example").get(TASKS)
    assert answer.status_code == 400
    assert [(line["event"], line["status"]) for line in lines if line["level"] != "debug"] == [("request", 400)]
    assert MARK not in json.dumps(lines)


def test_what_a_caller_passes_by_mistake_is_withheld() -> None:
    with _logged() as lines:
        structlog.get_logger("ductor.test").info(
            "mistake",
            input={"a": MARK},
            api_key=MARK,
            Authorization=MARK,
            cookies=MARK,
            dsn=MARK,
            password=MARK,
            count=3,
        )
    [line] = lines
    assert MARK not in json.dumps(line)
    assert (line["event"], line["count"]) == ("mistake", 3)


def test_a_standard_logger_s_fields_are_in_its_line_but_for_private_ones() -> None:
    fields = {"workflow": "review", "step": "weigh", "attempt": 2, "input": MARK, "found": object()}
    with _logged() as lines:
        logging.getLogger("ductor.engine").info("step_failed", extra=fields)
    [line] = lines
    assert {name: line[name] for name in ("event", *fields)} == {
        "event": "step_failed",
        "workflow": "review",
        "step": "weigh",
        "attempt": 2,
        "input": "[withheld]",
        "found": "<object>",
    }


def test_an_exception_s_message_is_no_part_of_its_outline() -> None:
    with _logged() as lines:
        try:
            try:
                raise KeyError(MARK)
            except KeyError as error:
                raise RuntimeError(f"{MARK} again") from error
        except RuntimeError:
            logging.getLogger("some.package").exception("it broke")
            structlog.get_logger("ductor.test").exception("it broke")
    assert MARK not in json.dumps(lines)
    for line in lines:
        assert [entry["class"] for entry in line["exception"]] == ["builtins.RuntimeError", "builtins.KeyError"]
