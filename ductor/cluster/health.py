"""The cluster's signs of life: a heartbeat row for the operator's console, and django-q2's `Stat` in the Django cache,
so that `qinfo` and `qmonitor` show Ductor's clusters too. Whoever reads them may find them missing; nothing depends on
them.
"""

import socket
import threading
from contextlib import suppress
from datetime import datetime
from uuid import UUID

import structlog
from django.db import Error as DatabaseFailure
from django.db import connections
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.signing import SignedPackage
from django_q.status import Stat, Status

from ductor.cluster.plan import ClusterPlan
from ductor.cluster.shared import Board, Flag, Phase
from tenants.errors import DuctorError
from workflows.clusters import beat, leave

log = structlog.get_logger("ductor.cluster")

SAVE_EVERY_SECONDS = 10.0
KEPT_SECONDS = 30
LEAVE_SECONDS = 2.0


class HealthRecord(Stat):
    """django-q2's record of one cluster, filled from the board instead of from a sentinel with queues."""

    def __init__(self, *, pid: int, sentinel_pid: int, cluster_id: UUID, born: datetime, board: Board, status: str):
        Status.__init__(self, pid, cluster_id)
        self.broker = get_broker()
        self.tob = born
        self.reincarnations = board.reincarnations
        self.sentinel = sentinel_pid
        self.status = status
        self.workers = board.pids

    def save(self) -> None:
        """Raises what the cache raises; django-q2's own method logs it twice a second."""
        self.broker.set_stat(self.key, SignedPackage.dumps(self, True), KEPT_SECONDS)


class HealthRecorder(threading.Thread):
    """Saves the record every few seconds, from the cluster process, which forks no more.

    In the sentinel a cache that does not answer would keep the guard from killing hung workers.
    """

    def __init__(
        self,
        *,
        pid: int,
        sentinel_pid: int,
        cluster_id: UUID,
        plan: ClusterPlan,
        board: Board,
        drain: Flag,
        started: Flag,
    ):
        super().__init__(name="health-recorder", daemon=True)
        self.plan = plan
        self.pid = pid
        self.sentinel_pid = sentinel_pid
        self.cluster_id = cluster_id
        self.born = timezone.now()
        self.board = board
        self.drain = drain
        self.started = started
        self.lost = False
        self.ended = threading.Event()

    def run(self) -> None:
        self.started.wait(SAVE_EVERY_SECONDS)
        self.save()
        while not self.drain.wait(SAVE_EVERY_SECONDS, poll=0.5):
            self.save()
        self.save()
        while not self.ended.wait(SAVE_EVERY_SECONDS):
            self.save()
        with suppress(DatabaseFailure, DuctorError, OSError):
            leave(cluster_id=self.cluster_id)
        connections.close_all()

    def finish(self) -> None:
        """Take the cluster's row away once its workers are gone; the process's end does not wait long for it."""
        self.ended.set()
        self.join(LEAVE_SECONDS)

    def beat(self) -> None:
        """Write the heartbeat row."""
        beat(
            cluster_id=self.cluster_id,
            host=socket.gethostname(),
            pid=self.pid,
            queues=self.plan.queues,
            status=str(self.status()),
            workers=self.plan.workers,
            busy=self.board.phases.count(Phase.WORKING),
        )

    def save(self) -> None:
        record = HealthRecord(
            pid=self.pid,
            sentinel_pid=self.sentinel_pid,
            cluster_id=self.cluster_id,
            born=self.born,
            board=self.board,
            status=str(self.status()),
        )
        try:
            self.beat()
            record.save()
        except (DatabaseFailure, DuctorError, OSError) as failure:
            connections.close_all()
            if not self.lost:
                log.warning("health_record_lost", why=type(failure).__name__)
            self.lost = True
        else:
            self.lost = False

    def status(self) -> object:
        if self.drain.is_set():
            return Conf.STOPPING
        if not self.started.is_set():
            return Conf.STARTING
        return Conf.IDLE if self.board.all_are(Phase.IDLE, Phase.VACANT) else Conf.WORKING
