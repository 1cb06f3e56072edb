"""README's first screen: its example is a lawful workflow, its commands run, its paths exist."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import ductor
from tests.boot.clones import Clone
from workflows import checks, registry

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# Run by other tests: the suite doesn't run itself, and fresh clones start `up`.
ELSEWHERE = {"python3 manage.py test", "python3 manage.py up", "python3 manage.py up --once"}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [line for line in lines if line.startswith("python3 manage.py")]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An app with the model that the example names."""
    models = ModuleType("shop.models")
    models.Order = type("Order", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.models", models)
    with registry.isolated():
        yield


def test_the_example_is_a_lawful_workflow(shop: None) -> None:
    (example,) = blocks("python")
    before = len(registry.all())

    exec(compile(example, "README.md", "exec"), {"__name__": "shop.workflows"})

    (workflow,) = registry.all()[before:] if before else registry.all()
    assert workflow.name == "ship-order"
    assert [message for message in checks.check_workflows(None) if "ship-order" in str(message)] == []
    assert set(re.search(r"from ductor import (.*)", example)[1].split(", ")) <= set(ductor.__all__)  # type: ignore[index]


def test_the_commands_are_the_products() -> None:
    assert set(commands()) >= ELSEWHERE
    assert all(line in ELSEWHERE or line.startswith("python3 manage.py ductor ") for line in commands())


def test_every_path_exists() -> None:
    paths = re.findall(r"`((?:tests|docs)/[^`]+)`", README) + re.findall(r"\]\(([^)#:]+)\)", README)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.full
def test_every_command_runs(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    done = clone.manage("up", "--once", *clone.ports, seconds=900)
    assert done.returncode == 0, done.stderr

    for line in commands():
        if line not in ELSEWHERE:
            done = clone.manage(*shlex.split(line)[2:])
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
