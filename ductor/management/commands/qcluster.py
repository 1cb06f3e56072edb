"""`manage.py qcluster`: run a cluster. It stands in for django-q2's command of the same name."""

import os
import re
from argparse import ArgumentTypeError
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseFailure
from django.db import connections
from django_q.conf import Conf

from ductor.cluster.cluster import Cluster
from ductor.cluster.outage import one_line
from ductor.cluster.plan import ClusterPlan
from ductor.contrib.q2 import schedules
from tenants.db.roles import UNSCOPED_ROLES, refuse_unsafe_role
from tenants.errors import DuctorError, IdentityInvalid, QueueUnknown
from tenants.identity import SYSTEM_QUEUE
from tenants.queues import list_queues, parse_queue
from workflows.system import ensure_running


def seconds(text: str) -> float:
    """A span in seconds from 0 to a day. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text, re.ASCII) or float(text) > 86_400:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return float(text)


def pool_size(text: str) -> int:
    """A number of workers from 1 to 256. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[0-9]{1,3}", text, re.ASCII) or not 1 <= int(text) <= 256:
        raise ArgumentTypeError(f"{text!r} is not a number of workers from 1 to 256")
    return int(text)


def queue_names(text: str) -> tuple[str, ...]:
    """Queue names, comma-separated, each once. Raises ArgumentTypeError."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        try:
            parse_queue(name)
        except IdentityInvalid as wrong:
            raise ArgumentTypeError(wrong.message) from wrong
        if name == SYSTEM_QUEUE:
            raise ArgumentTypeError("system work is served by every cluster; name only your own queues")
    return names


def refuse_unknown_queues(queues: tuple[str, ...]) -> None:
    """Raises QueueUnknown for a queue that nobody made: its workers would wait for ever for nothing."""
    known = {queue.name for queue in list_queues()}
    for name in queues:
        if name not in known:
            raise QueueUnknown(f"There is no queue {name!r}: make it with `manage.py ductor queues create {name}`.")


class Command(BaseCommand):
    help = "Run a cluster of workers until SIGTERM or Ctrl-C, then finish what runs and stop."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workers", type=pool_size, default=Conf.WORKERS, help="worker processes (%(default)s)")
        parser.add_argument(
            "--queues",
            type=queue_names,
            default=",".join(settings.DUCTOR_QUEUES),
            help="comma-separated queues to serve (DUCTOR_QUEUES); system work is always served",
        )
        parser.add_argument(
            "--drain-seconds",
            type=seconds,
            default=os.environ.get("DUCTOR_DRAIN_SECONDS", "25"),
            help="how long running tasks may go on after a stop signal before they are released (%(default)s)",
        )
        parser.add_argument(
            "--once-idle", action="store_true", help="stop by itself when no task is ready, running or due soon"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan = ClusterPlan(
            workers=options["workers"],
            queues=options["queues"],
            drain_seconds=options["drain_seconds"],
            recycle_tasks=Conf.RECYCLE,
            once_idle=options["once_idle"],
        )
        self.prepare(plan)
        code = Cluster(plan).run(on_ready=lambda: self.say_ready(plan))
        if code:
            raise CommandError("The sentinel died; its workers died with it.", returncode=code)

    def prepare(self, plan: ClusterPlan) -> None:
        """What needs the database, done before the first fork so that a refusal is the command's own."""
        if settings.DUCTOR_ROLE in UNSCOPED_ROLES:
            raise CommandError(f"A cluster runs as the worker, not as the {settings.DUCTOR_ROLE}: unset DUCTOR_ROLE.")
        try:
            refuse_unsafe_role()
            refuse_unknown_queues(plan.queues)
            ensure_running()
            ensure_running(schedules.watch, schedules.KEY)
        except DuctorError as refusal:
            raise CommandError(" ".join(str(refusal).split())) from refusal
        except DatabaseFailure as failure:
            raise CommandError(f"The database can't be used: {one_line(failure)}") from failure
        finally:
            connections.close_all()

    def say_ready(self, plan: ClusterPlan) -> None:
        queues = ", ".join(plan.queues)
        # Whoever read the line may have closed the pipe since; the cluster goes on.
        with suppress(OSError):
            self.stdout.write(f"qcluster ready: {plan.workers} workers, queues {queues}, pid {os.getpid()}")
            self.stdout.flush()
