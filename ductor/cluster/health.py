"""The cluster's health record: django-q2's `Stat` in the Django cache, so that `qinfo` and `qmonitor` show Ductor's
clusters too. Whoever reads it may find it missing; nothing depends on it.
"""

import threading
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

from ductor.cluster.shared import Board, Flag, Phase

log = structlog.get_logger("ductor.cluster")

SAVE_EVERY_SECONDS = 10.0
KEPT_SECONDS = 30


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

    def __init__(self, *, pid: int, sentinel_pid: int, cluster_id: UUID, board: Board, drain: Flag, started: Flag):
        super().__init__(name="health-recorder", daemon=True)
        self.pid = pid
        self.sentinel_pid = sentinel_pid
        self.cluster_id = cluster_id
        self.born = timezone.now()
        self.board = board
        self.drain = drain
        self.started = started
        self.lost = False

    def run(self) -> None:
        self.started.wait(SAVE_EVERY_SECONDS)
        self.save()
        while not self.drain.wait(SAVE_EVERY_SECONDS, poll=0.5):
            self.save()
        self.save()
        connections.close_all()

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
            record.save()
        except (DatabaseFailure, OSError) as failure:
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
