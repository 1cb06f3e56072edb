"""A workflow's shape: which steps there are and which wait for which.

The shape is what a running task relies on, so it has a checksum, and a version keeps its shape for ever. Handlers,
timeouts and retries are not part of it: they may be tuned under a running task.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from workflows.formats import DEFINITION_FORMAT

MAX_NODES = 500


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a definition, as a system check reports it."""

    code: str
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """A step's place in the graph: its name and the names of the steps that it waits for."""

    name: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order; make one with `build`."""

    nodes: tuple[Node, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The nodes' names in topological order."""
        return tuple(node.name for node in self.nodes)

    @cached_property
    def sinks(self) -> tuple[str, ...]:
        """The nodes that nothing waits for: their outputs are the task's output."""
        waited_for = {name for node in self.nodes for name in node.after}
        return tuple(name for name in self.names if name not in waited_for)

    def ready(self, done: Collection[str]) -> list[str]:
        """Return the nodes that are not in `done` and wait for nothing outside it, in topological order."""
        return [node.name for node in self.nodes if node.name not in done and all(name in done for name in node.after)]

    def as_json(self) -> dict[str, Any]:
        """Return the shape as it is stored with a tenant's definition."""
        return {
            "format": DEFINITION_FORMAT,
            "nodes": [{"name": n.name, "kind": "step", "after": sorted(n.after)} for n in self.nodes],
        }

    def checksum(self, input_schema: Any = None) -> str:
        """Return the SHA-256 (hex) of the shape and the input schema; the order of declaration does not matter."""
        shape = {"nodes": {node.name: sorted(node.after) for node in self.nodes}, "input": input_schema}
        text = json.dumps(shape, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def build(nodes: Iterable[Node]) -> tuple[Graph | None, list[Mistake]]:
    """Order the nodes; return the graph, or None and what is wrong with it."""
    given = list(nodes)
    mistakes = [*_size(given), *_duplicates(given), *_unknown(given)]
    if mistakes:
        return None, mistakes
    by_name = {node.name: node for node in given}
    try:
        order = list(TopologicalSorter({node.name: node.after for node in given}).static_order())
    except CycleError as error:
        path = " -> ".join(reversed(error.args[1]))
        return None, [
            Mistake("E001", f"The steps wait for each other in a circle: {path}.", "Remove one `after=` of the circle.")
        ]
    return Graph(tuple(by_name[name] for name in order)), []


def _size(nodes: Sequence[Node]) -> list[Mistake]:
    if not nodes:
        return [Mistake("E008", "It has no step.", "Decorate at least one function with `@workflow.step`.")]
    if len(nodes) > MAX_NODES:
        return [Mistake("E008", f"It has {len(nodes)} steps; {MAX_NODES} is the most.", "Split it into two workflows.")]
    return []


def _duplicates(nodes: Sequence[Node]) -> list[Mistake]:
    seen: set[str] = set()
    twice = [node.name for node in nodes if node.name in seen or seen.add(node.name)]  # type: ignore[func-returns-value]
    return [
        Mistake("E003", f"The step name {name!r} is used twice.", "Give one of them a `name=` of its own.")
        for name in dict.fromkeys(twice)
    ]


def _unknown(nodes: Sequence[Node]) -> list[Mistake]:
    names = {node.name for node in nodes}
    return [
        Mistake(
            "E002",
            f"The step {node.name!r} waits for {name!r}, which is no step of this workflow.",
            "Name a step in `after=` by its function or by its name; known: " + ", ".join(sorted(names)) + ".",
        )
        for node in nodes
        for name in node.after
        if name not in names
    ]
