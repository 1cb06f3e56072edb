"""The examples of the two pages run as they stand: an app made of their blocks, a real cluster, another process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT
from tests.architecture.test_docs import blocks
from tests.builders import assert_counters_true, build_tenant, rows
from tests.cluster.conftest import StartCluster

CALL = """
import json, sys, django
django.setup()
from shop import calls
print(json.dumps(calls.look(sys.argv[1], calls.place(sys.argv[1]))))
"""


def build_shop(page: str, folder: Path) -> None:
    """Write a page's blocks into the files that their first lines name."""
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    for block in blocks((ROOT / "docs" / page).read_text(), "python"):
        path = re.match(r"# (shop/\w+\.py)\n", block)
        assert path, block
        (folder / path[1]).write_text(block)


def place_and_look(slug: str, env: dict[str, str]) -> object:
    """Call the example's two functions in a process of the operator."""
    done = subprocess.run(
        [sys.executable, "-c", CALL, slug],
        cwd=ROOT,
        env={**os.environ, **env, "DUCTOR_ROLE": "operator"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def shop_env(tmp_path: Path) -> dict[str, str]:
    return {"DUCTOR_APPS": "tests.watching,shop", "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def test_the_example_of_django_q2_runs(start_cluster: StartCluster, shop_env: dict[str, str], tmp_path: Path) -> None:
    build_shop("django-q2.md", tmp_path)
    tenant = build_tenant()
    start_cluster(**shop_env)
    assert place_and_look(tenant.slug, shop_env) == {
        "packing": {"order": 7, "paper": "red"},
        "by": "shop.tasks.pack",
        "shipped": ["P-7"],
        "many": ["P-8", "P-9"],
        "chain": ["P-10", "{'order': 10, 'paper': 'brown'}"],
        "once": ["P-11"],
    }
    assert rows("select distinct tenant_id from django_q_task") == [(tenant.id,)]
    assert_counters_true()


def test_the_example_of_django_tasks_runs(
    start_cluster: StartCluster, shop_env: dict[str, str], tmp_path: Path
) -> None:
    build_shop("django-tasks.md", tmp_path)
    tenant = build_tenant()
    start_cluster(**shop_env)
    assert place_and_look(tenant.slug, shop_env) == ["tidied", {"cents": 21}, 200, "box, attempt 1"]
    found = rows("select workflow, priority from workflows_task where tenant_id = %s order by id", tenant.id)
    assert found == [("task:shop.tasks.price", 0), ("task:shop.tasks.weigh", 10), ("task:shop.tasks.label", 0)]
    assert_counters_true()
