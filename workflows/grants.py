"""What each role may do with the tables and functions of this app. What is not listed is not granted."""

from tenants.db.roles import ENGINE, OPERATOR, WEB, WORKER

_EVERY = "select, insert, update, delete"

TABLES: dict[str, dict[str, str]] = {
    "workflows_definition": {WEB: "select, insert", WORKER: "select, insert", OPERATOR: "select, insert"},
    "workflows_task": {ENGINE: _EVERY, WEB: "select", WORKER: "select", OPERATOR: "select"},
    "workflows_taskkey": {ENGINE: _EVERY, WEB: "select", WORKER: "select", OPERATOR: "select"},
    "workflows_step": {ENGINE: "select, insert", WEB: "select", WORKER: "select", OPERATOR: "select"},
    "workflows_partition": {ENGINE: _EVERY, OPERATOR: "select"},
    "workflows_admission": {ENGINE: "select, insert, delete", OPERATOR: "select"},
    "workflows_cluster": {WORKER: _EVERY, OPERATOR: "select"},
}

_STARTERS = (WEB, WORKER, OPERATOR)

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "workflows_enqueue_tasks": _STARTERS,
    "workflows_start_task": _STARTERS,
    "workflows_check_admission": (),
    "workflows_refuse_over_limit": (),
    "workflows_check_bounds": (),
    "workflows_check_lineage": (),
    "workflows_cancel_task": _STARTERS,
    "workflows_admit": (),
    "workflows_claim_tasks": (WORKER,),
    "workflows_lease_next": (),
    "workflows_count_moves": (),
    "workflows_returned": (),
    "workflows_promote_due": (WORKER,),
    "workflows_recover_tasks": (WORKER,),
    "workflows_finish_tasks": (WORKER,),
    "workflows_insert_steps": (),
    "workflows_record_steps": (WORKER,),
    "workflows_heartbeat_tasks": (WORKER,),
    "workflows_state_after": (),
    "workflows_ready_tenants": (WORKER,),
    "workflows_release_tasks": (WORKER,),
    "workflows_next_due": (WORKER,),
    "workflows_mark_fault": (WORKER, OPERATOR),
    "workflows_measure_classes": (OPERATOR,),
    # The owner's own: restoring a tenant is no act of a surface.
    "workflows_prepare_restore": (),
    "workflows_recount": (),
}

ENGINE_FUNCTIONS = frozenset(
    {
        "workflows_admit",
        "workflows_cancel_task",
        "workflows_claim_tasks",
        "workflows_enqueue_tasks",
        "workflows_finish_tasks",
        "workflows_heartbeat_tasks",
        "workflows_mark_fault",
        "workflows_measure_classes",
        "workflows_next_due",
        "workflows_promote_due",
        "workflows_ready_tenants",
        "workflows_record_steps",
        "workflows_recover_tasks",
        "workflows_release_tasks",
    },
)
