"""django-q2's schedules, fired by a perpetual task of the system tenant.

A schedule fires in a transaction of its own tenant that locks its row, starts its task and moves its time on. So it
fires once, whoever else looks at it, and not at all where that transaction does not commit. What one tenant's
schedules run into holds up nobody else's.
"""

import ast
import time
from contextlib import suppress
from contextvars import Context as EmptyContext
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import Error as DatabaseFailure
from django.db import transaction
from django_q.conf import Conf
from django_q.humanhash import uuid as human_id
from django_q.models import Schedule

from ductor.contrib.q2 import packages, results, starting
from tenants.errors import Conflict, DuctorError, Invalid, Refused, Unavailable
from tenants.identity import SYSTEM_QUEUE, new_id
from tenants.principals import Principal
from tenants.scope import attached, scope_of
from tenants.store import call, query
from workflows.context import Context
from workflows.control import RetryLater
from workflows.definitions import Workflow
from workflows.errors import InputInvalid
from workflows.retries import MAX_ATTEMPTS

log = structlog.get_logger("ductor.q2")

KEY = "q2-schedules"
LOOK_SECONDS = 5.0
SOON_SECONDS = 0.25
ROUND_SECONDS = 20.0
PAGE = 200
MAX_TEXT = 65_536

watch = Workflow(KEY, version=1, queue=SYSTEM_QUEUE, max_failures=MAX_ATTEMPTS, internal=True)


@watch.step(name="fire", timeout="1m")
def fire_schedules(ctx: Context[Any]) -> None:
    """Fire what is due and come again when the next is, at most five seconds later: one task, for ever."""
    pause = LOOK_SECONDS
    try:
        # A tick is its tenant's. This one belongs to the system and acts for each tenant in turn, as nobody else may.
        pause = EmptyContext().run(fire_due)
    except (DatabaseFailure, Unavailable):
        ctx.log.warning("q2_schedules_failed")
    raise RetryLater(pause)


def fire_due() -> float:
    """Fire every due schedule of all tenants; returns the seconds until there is something to do again.

    Raises:
        Unavailable, django.db.Error: the database can't be used; what had fired has fired.
    """
    until = time.monotonic() + ROUND_SECONDS
    held: set[UUID] = set()
    while time.monotonic() < until:
        due = call("q2_due_schedules", PAGE, sorted(held))
        fired = 0
        for tenant_id, schedule_id in due:
            if tenant_id in held:
                continue
            try:
                fired += fire(tenant_id=tenant_id, schedule_id=schedule_id)
            except Unavailable:
                raise
            except (Refused, Conflict) as refusal:
                # A limit, a freeze, no policy: it stays due, and so do the tenant's others.
                held.add(tenant_id)
                log.info("q2_schedule_held", tenant_id=str(tenant_id), code=refusal.code)
        if not fired:
            break
    ((seconds,),) = call("q2_next_schedule")
    return LOOK_SECONDS if seconds is None else min(LOOK_SECONDS, max(SOON_SECONDS, float(seconds)))


def fire(*, tenant_id: UUID, schedule_id: int) -> bool:
    """Fire one schedule of a tenant if it is due; False where it is not, or somebody else fires it now.

    One that can't be started for what stands in it leaves a failed result with the reason, and moves on all the same.

    Raises:
        Refused, Conflict: the tenant may start nothing now; nothing was changed.
    """
    with scope_of(tenant_id):
        ((now,),) = query("select ductor_now()")
        rows = Schedule.objects.select_for_update(skip_locked=True).exclude(repeats=0)
        schedule = rows.filter(pk=schedule_id, next_run__lt=now).first()
        if schedule is None:
            return False
        try:
            with transaction.atomic():
                schedule.task = starting.start(
                    package_of(schedule), principal=Principal.system(), source="system", immediate=True
                )
        except Invalid as wrong:
            schedule.task = _note_failure(tenant_id, schedule, wrong, now)
        _move_on(schedule, now)
    return True


def package_of(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule's call as `async_task()` would pack it.

    Raises:
        InputInvalid: its arguments are no Python literals.
    """
    kwargs = _keywords(schedule.kwargs or "")
    args = _literal(schedule.args, "args") if schedule.args else ()
    options = dict(kwargs.pop("q_options", {}))
    if schedule.intended_date_kwarg and schedule.next_run is not None:
        kwargs[schedule.intended_date_kwarg] = schedule.next_run.isoformat()
    if schedule.hook:
        options["hook"] = schedule.hook
    options["cluster"] = schedule.cluster or options.get("cluster")
    options.setdefault("group", schedule.name or schedule.pk)
    name = options.pop("task_name", None) or human_id()[0]
    return {
        **options,
        "id": new_id().hex,
        "name": name,
        "func": schedule.func,
        "args": args if isinstance(args, tuple) else (args,),
        "kwargs": kwargs,
    }


def check(sender: object, instance: Schedule, raw: bool = False, **_: Any) -> None:
    """Receiver of `pre_save`: what could never fire is refused when it is made.

    Raises:
        UnknownWorkflow, InputInvalid: as when it fires.
    """
    if not raw and not instance._state.db:
        packages.read(package_of(instance))


def _keywords(text: str) -> dict[str, Any]:
    """Read keyword arguments as django-q2 writes them: a dict, or `x=1, y='z'`."""
    if not text:
        return {}
    with suppress(InputInvalid):
        found = _literal(text, "kwargs")
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
    try:
        parsed = ast.parse(f"f({text[:MAX_TEXT]})", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _wrong("kwargs") from None
    if not isinstance(parsed, ast.Call) or parsed.args or any(word.arg is None for word in parsed.keywords):
        raise _wrong("kwargs")
    return {str(word.arg): _literal(word.value, "kwargs") for word in parsed.keywords}


def _literal(source: Any, field: str) -> Any:
    if isinstance(source, str) and len(source) > MAX_TEXT:
        raise _wrong(field)
    try:
        return ast.literal_eval(source)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise _wrong(field) from None


def _wrong(field: str) -> InputInvalid:
    detail = f"Python literals in at most {MAX_TEXT} characters"
    return InputInvalid(
        f"A schedule's {field} must be {detail}.",
        errors=[{"pointer": f"/{field}", "code": "out_of_bounds", "detail": detail}],
    )


def _note_failure(tenant_id: UUID, schedule: Schedule, wrong: DuctorError, now: datetime) -> str:
    link: packages.Link = {
        "id": new_id().hex,
        "name": (schedule.name or human_id()[0])[:100],
        "func": schedule.func,
        "args": None,
        "kwargs": None,
        "hook": None,
        "group": str(schedule.name or schedule.pk)[:100],
        "cluster": None,
        "cached": False,
        "save": True,
    }
    results.save(tenant_id=tenant_id, link=link, ended=results.Ended(False, wrong.message, now, now))
    log.warning("q2_schedule_wrong", tenant_id=str(attached() or tenant_id), schedule=schedule.pk, code=wrong.code)
    return str(link["id"])


def _move_on(schedule: Schedule, now: datetime) -> None:
    """Set the next time as django-q2 does: one at a time, or past all that was missed where `catch_up` is off."""
    if schedule.schedule_type == Schedule.ONCE:
        if schedule.repeats < 0:
            schedule.delete()
            return
        schedule.repeats = 0
    else:
        schedule.repeats = schedule.repeats - 1 if schedule.repeats > 0 else -1
        try:
            schedule.next_run = schedule.calculate_next_run(schedule.next_run)
            while not Conf.CATCH_UP and schedule.next_run <= now:
                schedule.next_run = schedule.calculate_next_run(schedule.next_run)
        except (ValueError, OverflowError, UnboundLocalError, ImportError, AttributeError, KeyError) as error:
            # A time that nobody can name comes never.
            log.warning("q2_schedule_ends", schedule=schedule.pk, why=type(error).__name__)
            schedule.repeats = 0
    schedule.save()
