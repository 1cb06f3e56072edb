"""What each role may do with django-q2's tables. What is not listed is not granted.

Results are written by workers alone. `django_q_ormq` is the queue of a broker that is not used: nobody may write it.
"""

from tenants.db.roles import ENGINE, OPERATOR, WEB, WORKER

_EVERY = "select, insert, update, delete"

TABLES: dict[str, dict[str, str]] = {
    "django_q_task": {WEB: "select, update, delete", WORKER: _EVERY, OPERATOR: "select"},
    "django_q_schedule": {ENGINE: "select", WEB: _EVERY, WORKER: _EVERY, OPERATOR: _EVERY},
    "django_q_ormq": {OPERATOR: "select"},
}

ADOPTED_TABLES = frozenset(TABLES)

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "q2_due_schedules": (WORKER,),
    "q2_next_schedule": (WORKER,),
}

ENGINE_FUNCTIONS = frozenset(FUNCTIONS)
