"""The cluster process: the one that `manage.py qcluster` is. It forks the sentinel and reports its end."""

import os
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from types import FrameType

import django_q.cluster
from django.db import connections

from ductor.cluster.health import HealthRecorder
from ductor.cluster.lifeline import stop_signals_held
from ductor.cluster.plan import ClusterPlan
from ductor.cluster.sentinel import Sentinel
from ductor.cluster.shared import POLL_SECONDS, Board, Flag

WATCH_SECONDS = 5.0


class Cluster(django_q.cluster.Cluster):
    """django-q2's cluster with flags in plain shared memory in place of events that a kill can leave locked."""

    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan
        self.board = Board(plan.workers)
        self.drain = Flag()
        self.started = Flag()
        super().__init__()
        self.stop_event = self.drain
        self.start_event = self.started

    def start(self) -> int:
        """Fork the sentinel; returns the cluster's pid. The caller must hold no open database connection."""
        connections.close_all()
        self.sentinel = ForkProcess(target=Sentinel, name="sentinel", kwargs=self.sentinel_arguments())
        with stop_signals_held():
            self.sentinel.start()
        self.health = HealthRecorder(
            pid=self.pid,
            sentinel_pid=self.sentinel.pid or 0,
            cluster_id=self.cluster_id,
            plan=self.plan,
            board=self.board,
            drain=self.drain,
            started=self.started,
        )
        self.health.start()
        return int(self.pid)

    def sentinel_arguments(self) -> dict[str, object]:
        return {
            "plan": self.plan,
            "board": self.board,
            "drain": self.drain,
            "started": self.started,
            "cluster_id": self.cluster_id,
            "parent_pid": os.getpid(),
        }

    def run(self, *, on_ready: Callable[[], None]) -> int:
        """Run until the cluster has drained. Returns the exit code: 0 after a drain, 1 when the sentinel died.

        `on_ready` is called once, when every worker has come to its first turn.
        """
        self.start()
        ready = False
        try:
            while self.sentinel.is_alive():
                if not ready and self.started.is_set():
                    ready = True
                    on_ready()
                # Its end wakes this at once; a signal needs no waking, since the sentinel sees the flag.
                self.sentinel.join(WATCH_SECONDS if ready else POLL_SECONDS)
        finally:
            # An exception here must not leave through multiprocessing's exit, which waits for the sentinel.
            self.sentinel.kill()
            if self.drain.is_set():
                self.health.finish()
        return 0 if self.sentinel.exitcode == 0 and self.drain.is_set() else 1

    def stop(self) -> bool:
        """Ask the cluster to drain; True if it was running. Does not wait: a signal handler calls it."""
        self.drain.set()
        return bool(self.sentinel and self.sentinel.is_alive())

    def sig_handler(self, signum: int, frame: FrameType | None) -> None:
        self.drain.set()
