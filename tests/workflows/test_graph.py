"""The shape of a workflow: order, mistakes, checksum."""

import pytest

from workflows.graph import MAX_NODES, Graph, Node, build


def graph_of(*nodes: Node) -> Graph:
    graph, mistakes = build(nodes)
    assert mistakes == []
    assert graph is not None
    return graph


DIAMOND = (Node("d", ("b", "c")), Node("b", ("a",)), Node("c", ("a",)), Node("a"))


def test_every_node_stands_after_what_it_waits_for() -> None:
    names = graph_of(*DIAMOND).names

    assert names[0] == "a"
    assert names[-1] == "d"
    assert set(names) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("done", "ready"),
    [((), ["a"]), (("a",), ["b", "c"]), (("a", "b"), ["c"]), (("a", "b", "c"), ["d"]), (("a", "b", "c", "d"), [])],
)
def test_ready_are_the_nodes_whose_predecessors_are_done(done: tuple[str, ...], ready: list[str]) -> None:
    assert sorted(graph_of(*DIAMOND).ready(set(done))) == ready


def test_sinks_are_what_nothing_waits_for() -> None:
    assert graph_of(*DIAMOND).sinks == ("d",)
    assert graph_of(Node("a"), Node("b")).sinks == ("a", "b")


@pytest.mark.parametrize(
    ("nodes", "code", "words"),
    [
        ((), "E008", "no step"),
        (tuple(Node(f"n{i}") for i in range(MAX_NODES + 1)), "E008", "501 steps"),
        ((Node("a"), Node("a")), "E003", "'a' is used twice"),
        ((Node("a", ("b",)),), "E002", "'a' waits for 'b'"),
        ((Node("a", ("a",)),), "E001", "a -> a"),
        ((Node("a", ("c",)), Node("b", ("a",)), Node("c", ("b",))), "E001", " -> "),
    ],
)
def test_a_wrong_shape_is_named_with_a_hint(nodes: tuple[Node, ...], code: str, words: str) -> None:
    graph, mistakes = build(nodes)

    assert graph is None
    assert [mistake.code for mistake in mistakes] == [code]
    assert words in mistakes[0].text
    assert mistakes[0].hint


def test_the_checksum_is_of_the_shape_and_not_of_the_order_of_declaration() -> None:
    same = graph_of(Node("a"), Node("c", ("a",)), Node("b", ("a",)), Node("d", ("c", "b")))

    assert same.checksum() == graph_of(*DIAMOND).checksum()
    assert len(same.checksum()) == 64


@pytest.mark.parametrize(
    "other",
    [
        (Node("a"), Node("b", ("a",)), Node("c"), Node("d", ("b", "c"))),
        (Node("a"), Node("b", ("a",)), Node("c", ("a",)), Node("d", ("c",))),
        (Node("x"), Node("b", ("x",)), Node("c", ("x",)), Node("d", ("b", "c"))),
    ],
)
def test_another_edge_or_name_is_another_checksum(other: tuple[Node, ...]) -> None:
    assert graph_of(*other).checksum() != graph_of(*DIAMOND).checksum()


def test_another_input_schema_is_another_checksum() -> None:
    graph = graph_of(*DIAMOND)

    assert graph.checksum({"type": "object"}) != graph.checksum(None)


def test_the_stored_form_lists_every_node_with_its_edges() -> None:
    assert graph_of(Node("a"), Node("b", ("a",))).as_json() == {
        "format": 1,
        "nodes": [{"name": "a", "kind": "step", "after": []}, {"name": "b", "kind": "step", "after": ["a"]}],
    }
