"""What the task API's operations take and answer."""

from tenants.api.description import CURSOR, LIMIT, Answer, Operation, Parameter
from tenants.api.documents import page_example
from tenants.permissions import Permission
from workflows.api import documents, parsing
from workflows.api.waiting import MAX_WAIT_SECONDS
from workflows.states import State

TASK_ID = Parameter(
    "task_id", "The task's id.", {"type": "string"}, documents.TASK_ID_EXAMPLE, place="path", required=True
)
_WORD = {"type": "string", "maxLength": 128}
_START_PROBLEMS = (
    "definition_changed",
    "input_invalid",
    "key_conflict",
    "policy_missing",
    "queue_unknown",
    "quota_exceeded",
    "tenant_frozen",
    "unknown_workflow",
)

LIST_TASKS = Operation(
    id="listTasks",
    tag="tasks",
    summary="List tasks",
    description="The tenant's tasks, newest first, without what was put in and got out.",
    permission=Permission.TASKS_READ,
    answers={200: Answer("A page of tasks.", documents.SUMMARIES, page_example(documents.SUMMARY_EXAMPLE))},
    parameters=(
        Parameter("state", "Only tasks in this state.", {"type": "string", "enum": list(State)}, "failed"),
        Parameter("workflow", "Only tasks of this workflow.", _WORD, "order-review"),
        Parameter("key", "Only the task of this key.", _WORD, "order-17"),
        LIMIT,
        CURSOR,
    ),
)
START_TASK = Operation(
    id="startTask",
    tag="tasks",
    summary="Start a task",
    description="The task is committed when the answer comes. A key starts one task only, whoever repeats the request.",
    permission=Permission.TASKS_START,
    answers={
        201: Answer("The new task.", documents.TASK, documents.TASK_EXAMPLE, ("Location",)),
        200: Answer(
            "The task that this key had started, with the same content.",
            documents.TASK,
            documents.TASK_EXAMPLE,
            ("Location", "Idempotency-Replayed"),
        ),
    },
    parameters=(
        Parameter(
            "Idempotency-Key",
            "The same thing as the member `key`.",
            {"type": "string", "minLength": 1, "maxLength": 128},
            "order-17",
            place="header",
        ),
    ),
    body=parsing.START,
    problems=_START_PROBLEMS,
)
START_TASKS = Operation(
    id="startTasks",
    tag="tasks",
    summary="Start many tasks",
    description=(
        "Starts 1 to 1,000 tasks in one transaction, all or none; what is wrong is named by `/items/<n>/…`. Each item"
        " may carry its own key."
    ),
    permission=Permission.TASKS_START,
    answers={
        201: Answer("At least one task is new.", documents.STARTED, documents.STARTED_EXAMPLE),
        200: Answer("Every key had started its task before.", documents.STARTED, documents.STARTED_EXAMPLE),
    },
    body=parsing.BATCH,
    problems=_START_PROBLEMS,
)
GET_TASK = Operation(
    id="getTask",
    tag="tasks",
    summary="One task",
    description="The task with its recorded steps; `wait` answers when it has ended, or with its state by then.",
    permission=Permission.TASKS_READ,
    answers={200: Answer("The task.", documents.TASK_WITH_STEPS, documents.ENDED_EXAMPLE)},
    parameters=(
        TASK_ID,
        Parameter(
            "wait",
            "How many seconds to wait for its end.",
            {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_SECONDS, "default": 0},
        ),
    ),
)
CANCEL_TASK = Operation(
    id="cancelTask",
    tag="tasks",
    summary="Cancel a task",
    description="Ends a task that has not ended. Who runs it learns so at the next heartbeat, and writes nothing.",
    permission=Permission.TASKS_CANCEL,
    answers={200: Answer("The cancelled task.", documents.TASK, documents.CANCELLED_EXAMPLE)},
    parameters=(TASK_ID,),
    body=parsing.CANCEL,
    body_required=False,
    problems=("already_terminal",),
)
LIST_WORKFLOWS = Operation(
    id="listWorkflows",
    tag="workflows",
    summary="List workflows",
    description="The workflows that can be started, by name, each in its newest version.",
    permission=Permission.TASKS_READ,
    answers={200: Answer("A page of workflows.", documents.WORKFLOWS, page_example(documents.WORKFLOW_EXAMPLE))},
    parameters=(LIMIT, CURSOR),
)
GET_WORKFLOW = Operation(
    id="getWorkflow",
    tag="workflows",
    summary="One workflow",
    description="One workflow in its newest version, or in the one that is named.",
    permission=Permission.TASKS_READ,
    answers={200: Answer("The workflow.", documents.WORKFLOW, documents.WORKFLOW_EXAMPLE)},
    parameters=(
        Parameter("name", "The workflow's name.", {"type": "string"}, "order-review", place="path", required=True),
        Parameter("version", "Which version.", {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}),
    ),
)
