"""A cluster behind PgBouncer in transaction mode: woken past it, or polling where there is no way past it."""

import signal

import pytest

from tests.builders import build_tenant, rows
from tests.cluster.conftest import StartCluster
from tests.cluster.running import until
from tests.cluster.tasks import chores, until_states
from tests.database import as_role
from tests.operations.pooling import pooler
from tests.operations.servers import url_of

LISTENING = "select count(*)::int from tenants_listener where expires_at > clock_timestamp()"


@pytest.mark.parametrize(
    "direct",
    [pytest.param(True, id="DATABASE_DIRECT_URL"), pytest.param(False, id="polling", marks=pytest.mark.full)],
)
def test_surface_and_workers_run_behind_a_transaction_pooler(
    start_cluster: StartCluster, monkeypatch: pytest.MonkeyPatch, direct: bool
) -> None:
    tenants = [build_tenant(), build_tenant()]
    with pooler(2) as running:
        past = {"DATABASE_DIRECT_URL": url_of("worker")} if direct else {}
        cluster = start_cluster(DUCTOR_DATABASE_URL_WORKER=running.url_of("worker"), **past)
        if direct:
            until(lambda: rows(LISTENING) == [(2,)])
        else:
            until(lambda: cluster.log.count("listen_failed_polling_instead") == 2)
        monkeypatch.setenv("DUCTOR_DATABASE_URL_WEB", running.url_of("web"))
        with as_role("web"):
            for _ in range(10):
                for tenant in tenants:
                    chores(tenant, "noop")
        until_states(completed=20)
        assert ("listen_failed" in cluster.log) is not direct
        cluster.signal_group(signal.SIGTERM)
        assert cluster.wait_end() == 0
    assert '"level": "error"' not in cluster.log
