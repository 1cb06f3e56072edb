"""The schemas and examples of what the task API answers; `serializers` writes such documents."""

from typing import Any

from tenants.api.description import component, page_schema, record
from tenants.api.documents import COUNT, ID, PRINCIPAL, PRINCIPAL_EXAMPLE, TEXT, TIME, TIME_OR_NULL
from tenants.api.requests import Schema
from workflows.states import State

_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_OBJECT_OR_NULL: Schema = {"type": ["object", "null"]}
_VERSION: Schema = {"type": "integer", "minimum": 1}

_SUMMARY: dict[str, Schema] = {
    "id": ID,
    "key": _TEXT_OR_NULL,
    "workflow": TEXT,
    "version": _VERSION,
    "queue": TEXT,
    "priority": {"type": "integer", "minimum": -100, "maximum": 100},
    "state": {"type": "string", "enum": list(State)},
    "reason": {**_TEXT_OR_NULL, "description": "Why it stands there, where there is more to say."},
    "attempt": {**COUNT, "description": "Claims so far."},
    "failures": {**COUNT, "description": "Failures that count against the workflow's cap."},
    "created_at": TIME,
    "due_at": {**TIME, "description": "Not before; moves with each pause."},
    "started_at": TIME_OR_NULL,
    "terminal_at": TIME_OR_NULL,
}
_TASK: dict[str, Schema] = {
    **_SUMMARY,
    "input": {"description": "As it was started."},
    "output": {"description": "The last step's output, or an object of the last steps' outputs by name."},
    "error": {**_OBJECT_OR_NULL, "description": "The last failure."},
    "progress": {"description": "What a handler last said of how far it is."},
    "origin": {"type": "object", "properties": {"source": TEXT, "principal": PRINCIPAL, "request_id": TEXT}},
}
SUMMARY = component("TaskSummary", record(_SUMMARY))
SUMMARIES = page_schema("TaskPage", SUMMARY)
TASK = component("Task", record(_TASK))
STEP = component(
    "Step",
    record(
        {
            "name": TEXT,
            "attempt": _VERSION,
            "state": {"type": "string", "enum": ["completed", "failed"]},
            "output": {},
            "error": _OBJECT_OR_NULL,
            "started_at": TIME_OR_NULL,
            "finished_at": TIME,
        }
    ),
)
TASK_WITH_STEPS = component("TaskWithSteps", record({**_TASK, "steps": {"type": "array", "items": STEP}}))
STARTED = component(
    "StartedTasks",
    record(
        {
            "data": {
                "type": "array",
                "description": "In the order of the items.",
                "items": record(
                    {
                        "id": ID,
                        "key": _TEXT_OR_NULL,
                        "created": {"type": "boolean", "description": "False where this key had started it before."},
                    }
                ),
            }
        }
    ),
)
WORKFLOW = component(
    "Workflow",
    record(
        {
            "name": TEXT,
            "version": {**_VERSION, "description": "The version shown here."},
            "versions": {"type": "array", "items": _VERSION, "description": "All that can be started, ascending."},
            "queue": {**TEXT, "description": "Where its tasks go unless a start names another queue."},
            "max_failures": _VERSION,
            "input_schema": {**_OBJECT_OR_NULL, "description": "JSON Schema of the input; null takes any JSON."},
            "steps": {
                "type": "array",
                "items": record(
                    {
                        "name": TEXT,
                        "after": {"type": "array", "items": TEXT},
                        "max_attempts": _VERSION,
                        "timeout_seconds": {"type": "number", "exclusiveMinimum": 0},
                        "atomic": {"type": "boolean"},
                    }
                ),
            },
        }
    ),
)
WORKFLOWS = page_schema("WorkflowPage", WORKFLOW)

TASK_ID_EXAMPLE = "01a22d2d-43e2-7788-aa1a-eaf9913042db"
SUMMARY_EXAMPLE: dict[str, Any] = {
    "id": TASK_ID_EXAMPLE,
    "key": "order-17",
    "workflow": "order-review",
    "version": 1,
    "queue": "default",
    "priority": 0,
    "state": "queued",
    "reason": None,
    "attempt": 0,
    "failures": 0,
    "created_at": "2026-11-30T15:57:50.949681Z",
    "due_at": "2026-11-30T15:57:50.949681Z",
    "started_at": None,
    "terminal_at": None,
}
TASK_EXAMPLE = SUMMARY_EXAMPLE | {
    "input": {"order": 17},
    "output": None,
    "error": None,
    "progress": None,
    "origin": {
        "source": "api",
        "principal": PRINCIPAL_EXAMPLE,
        "request_id": "01a22d2d-43b0-7509-8e5e-34d6dbd9065c",
    },
}
CANCELLED_EXAMPLE = TASK_EXAMPLE | {"state": "cancelled", "terminal_at": "2026-11-30T16:00:12.000431Z"}
ENDED_EXAMPLE = TASK_EXAMPLE | {
    "state": "completed",
    "attempt": 1,
    "started_at": "2026-11-30T15:57:50.961201Z",
    "terminal_at": "2026-11-30T15:57:51.123001Z",
    "output": {"price": 4200},
    "steps": [
        {
            "name": "quote",
            "attempt": 1,
            "state": "completed",
            "output": {"price": 4200},
            "error": None,
            "started_at": "2026-11-30T15:57:50.961201Z",
            "finished_at": "2026-11-30T15:57:51.123001Z",
        }
    ],
}
STARTED_EXAMPLE = {
    "data": [
        {"id": TASK_ID_EXAMPLE, "key": "order-17", "created": False},
        {"id": "01a22d2d-4421-7165-b883-6bc5693146ac", "key": "order-18", "created": True},
    ]
}
WORKFLOW_EXAMPLE = {
    "name": "order-review",
    "version": 2,
    "versions": [1, 2],
    "queue": "default",
    "max_failures": 3,
    "input_schema": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    "steps": [
        {"name": "weigh", "after": [], "max_attempts": 3, "timeout_seconds": 300.0, "atomic": False},
        {"name": "quote", "after": ["weigh"], "max_attempts": 3, "timeout_seconds": 30.0, "atomic": True},
    ],
}
