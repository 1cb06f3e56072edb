"""The docs say what the code does: names that they name exist, lists that they repeat are the code's own."""

import ast
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from django.core.management import get_commands

from ductor import problems
from ductor.databases import ROLES
from ductor.management.commands.ductor import Command
from tenants import checks as table_checks
from tests.architecture.sources import PACKAGES, ROOT, name_of, python_files, tree_of
from tests.architecture.test_errors import leaf_classes
from workflows import checks, registry
from workflows.states import MOVES, TERMINAL, State

PAGES = {name_of(path): path.read_text() for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])}

# DESIGN section 3, as far as the kernel has them.
KERNEL_WORDS = frozenset(
    {"tenant", "scope", "policy", "admission", "task", "step", "tick", "turn", "partition", "claim", "lease"}
    | {"fencing token", "release", "fact"}
)
OPERATIONS = "docs/operations.md"
# What no test runs: the suite runs itself, and the bench takes minutes of both cores.
BY_HAND = {"test": ".ci/run"}
# Read by a library, or not read yet; the page says so.
NOT_READ_BY_NAME = {"VALKEY_URL"}


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the tables under a heading of a page, without their head lines."""
    text = PAGES[page].split(f"{heading}\n", 1)[1]
    section = re.split(r"^#+ ", text, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for index, row in enumerate(cells) if not _is_head(cells, index)]


def _is_head(rows: list[list[str]], index: int) -> bool:
    def rule(row: list[str]) -> bool:
        return all(set(cell) <= set("-:") and cell for cell in row)

    return rule(rows[index]) or (index + 1 < len(rows) and rule(rows[index + 1]))


def codes(text: str) -> list[str]:
    """Return what stands in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def blocks(text: str, kind: str) -> list[str]:
    """Return the fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_every_path_that_is_named_exists() -> None:
    tops = "|".join((*PACKAGES, "tests", "docs", "templates"))
    named = {
        (page, path)
        for page, text in PAGES.items()
        for code in codes(text)
        for path in re.findall(rf"^(?:{tops})/[\w./-]*$", code.partition("::")[0])
    }
    assert named
    assert {(page, path) for page, path in named if not (ROOT / path).exists()} == set()


def test_every_link_leads_somewhere() -> None:
    broken = [
        (page, target)
        for page, text in PAGES.items()
        for target in re.findall(r"\]\(([^)#]+)\)", text)
        if "://" not in target and not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert broken == []


def test_every_test_that_is_named_exists() -> None:
    named = {(page, test) for page, text in PAGES.items() for test in re.findall(r"`(tests/[\w/]+\.py::\w+)`", text)}
    assert len(named) > 100
    assert {(page, test) for page, test in named if not _is_test(test)} == set()


def _is_test(test: str) -> bool:
    path, _, name = test.partition("::")
    if not (path.endswith(".py") and (ROOT / path).exists()):
        return False
    tree = tree_of(ROOT / path)
    return name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_sentence_and_number_of_the_invariants_names_a_test() -> None:
    for heading in ("## The first source text", "## The second source text", "## The contract's numbers"):
        for row in rows_of("docs/invariants.md", heading):
            assert codes(row[-1]), row[0]


def test_the_glossary_has_each_word_once_and_where_it_stands() -> None:
    headings = re.findall(r"^## (?!Not built)(.*)$", PAGES["docs/glossary.md"], re.MULTILINE)
    rows = [row for heading in headings for row in rows_of("docs/glossary.md", f"## {heading}")]
    words = [row[0] for row in rows]
    assert len(words) == len(set(words))
    assert set(words) >= KERNEL_WORDS
    assert [row[0] for row in rows if len(codes(row[2])) != 1] == []


def test_the_states_page_agrees_with_the_moves() -> None:
    states = {codes(row[0])[0]: row[2] == "yes" for row in rows_of("docs/states.md", "# States of a task")}
    assert states == {state.value: state in TERMINAL for state in State}
    moves = {(codes(row[0])[0], codes(row[1])[0]) for row in rows_of("docs/states.md", "## Moves")}
    assert moves == {(before.value, after.value) for before, afters in MOVES.items() for after in afters}
    for row in rows_of("docs/states.md", "## Moves"):
        for function in codes(row[3]):
            assert (ROOT / "workflows" / "sql" / f"{function.removeprefix('workflows_')}_v01.sql").exists(), function


def test_the_errors_page_lists_every_class_as_it_is() -> None:
    documented = {
        codes(row[0])[0]: (codes(row[1])[0], int(row[2]), row[3]) for row in rows_of("docs/errors.md", "## Classes")
    }
    assert documented == {error.__name__: (error.code, error.http_status, error.sqlstate) for error in leaf_classes()}


def test_the_errors_page_names_every_code_of_http() -> None:
    documented = {codes(row[0])[0] for row in rows_of("docs/errors.md", "## What only HTTP knows")}
    typed = {error.code for error in leaf_classes()}
    assert documented == {problem.code for problem in problems.explained().values()} - typed


def test_the_errors_page_names_every_field_that_python_sets() -> None:
    fields = {codes(row[0])[0]: set(codes(row[4])) for row in rows_of("docs/errors.md", "## Classes")}
    for path in python_files(*PACKAGES):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in fields:
                given = {word.arg for word in node.keywords if word.arg}
                assert given <= fields[node.func.id], f"{name_of(path)}:{node.lineno}"


def environment_names() -> set[str]:
    """Return the environment variables that the code reads, with a role's name where one is put in."""
    found: set[str] = set()
    for path in python_files(*PACKAGES):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(
                    re.findall(r"\b(?:DUCTOR_[A-Z0-9_]+[A-Z]|DATABASE_(?:DIRECT_)?URL|VALKEY_URL)\b", node.value)
                )
                found |= set(re.findall(r"\b(?:PROMETHEUS_MULTIPROC_DIR|DJANGO_SETTINGS_MODULE)\b", node.value))
    return found


def test_the_configuration_page_lists_every_variable() -> None:
    text = PAGES["docs/configuration.md"]
    documented = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", text, re.MULTILINE)) | NOT_READ_BY_NAME
    by_role = {f"DUCTOR_{kind}_{role}" for kind in ("DATABASE_URL", "PASSWORD") for role in map(str.upper, ROLES)}
    # Put together from a role's name, or a setting and no variable.
    read = environment_names() - {"DUCTOR_DATABASE_URL", "DUCTOR_PASSWORD", "DUCTOR_TEST", "DUCTOR_DIRECT_URL"}
    assert documented == read | by_role | {"DUCTOR_DATABASE_URL_TEST"}


def test_each_mistake_of_a_workflow_is_explained() -> None:
    documented = {row[0] for row in rows_of("docs/handlers.md", "## Checks")}
    known = set(re.findall(r"\b[EW]0\d\d\b", f"{checks.__doc__} {table_checks.__doc__}"))
    assert documented == known


def commands_in(text: str) -> set[str]:
    """Return the commands that a page names, as words after `manage.py`."""
    lines = [line for block in blocks(text, "console") for line in block.splitlines()]
    lines += codes(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    found = set()
    for line in lines:
        match = re.match(r"(?:python3 )?manage\.py ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*){0,2})", line.strip())
        if match:
            words = match[1].split()
            found.add(
                " ".join(words[: 1 if words[0] != "ductor" else 2 if words[1:2] and words[1] not in _groups() else 3])
            )
    return found


def _groups() -> set[str]:
    return {group.name for group in Command.typer_app.registered_groups if group.name}


def known_commands() -> set[str]:
    """Return every command of `manage.py` and of `manage.py ductor`."""
    app = Command.typer_app
    ours = {command.name for command in app.registered_commands if command.name}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        for command in group.typer_instance.registered_commands:
            name = command.name or command.callback.__name__  # type: ignore[union-attr]
            ours.add(f"{group.name} {name}")
    return {"up", "test", *get_commands(), *(f"ductor {name}" for name in ours)}


def test_every_command_that_is_named_exists_and_a_test_runs_it() -> None:
    named = set().union(*(commands_in(text) for text in PAGES.values()))
    groups = {"ductor", *(f"ductor {group}" for group in _groups())}
    named -= groups
    assert named - known_commands() == set()
    run_by = {codes(row[0])[0]: row[1].strip("`") for row in rows_of("docs/commands.md", "## Which test runs which")}
    assert named - set(run_by) == set()
    assert {name for name in run_by if name not in known_commands()} == set()
    by_hand = {name: test for name, test in run_by.items() if not _is_test(test)}
    assert by_hand == BY_HAND


def test_every_command_of_ours_is_documented() -> None:
    ours = {name for name in known_commands() if name.startswith("ductor ")} | {"up", "qcluster", "test"}
    run_by = {codes(row[0])[0] for row in rows_of("docs/commands.md", "## Which test runs which")}
    assert ours - run_by == set()


def test_json_in_the_docs_is_json() -> None:
    found = [block for text in PAGES.values() for block in blocks(text, "json")]
    assert found
    for block in found:
        json.loads(block)


def test_problem_bodies_in_the_docs_carry_real_codes() -> None:
    known = {problem.code: problem for problem in problems.explained().values()}
    for block in blocks(PAGES["docs/api.md"], "json"):
        document = json.loads(block)
        if "code" in document:
            problem = known[document["code"]]
            assert (document["status"], document["title"]) == (problem.status, problem.title)
            assert document["type"] == f"/problems/{problem.slug}"


def test_the_handlers_page_shows_a_lawful_workflow(monkeypatch: pytest.MonkeyPatch) -> None:
    models = ModuleType("shop.models")
    models.Order = type("Order", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shop", ModuleType("shop"))
    monkeypatch.setitem(sys.modules, "shop.models", models)
    module = ModuleType("shop.workflows")
    monkeypatch.setitem(sys.modules, "shop.workflows", module)
    example = next(block for block in blocks(PAGES["docs/handlers.md"], "python") if "Workflow(" in block)
    with registry.isolated():
        exec(compile(example, "docs/handlers.md", "exec"), module.__dict__)
        (workflow,) = registry.all()
        assert checks.check_workflows() == []
        assert workflow.graph.ready(()) == ["weigh", "quote"]
        assert workflow.graph.sinks == ("mark",)


def test_every_python_block_can_be_parsed() -> None:
    for page, text in PAGES.items():
        for block in blocks(text, "python"):
            ast.parse(block, page)


def test_docs_name_no_place_on_a_machine() -> None:
    tops = [path.name for path in Path("/").iterdir() if path.is_dir()]
    here = re.compile(rf"(?<![\w.:/])/(?:{'|'.join(map(re.escape, tops))})/")
    # Where a host's own files belong is no place on this machine.
    texts = {**PAGES, OPERATIONS: re.sub(r"/(?:opt|etc)/[\w./-]+", "", PAGES[OPERATIONS])}
    assert [(page, found[0]) for page, text in texts.items() if (found := here.findall(text))] == []
    assert [page for page, text in PAGES.items() if str(ROOT) in text] == []


def test_adrs_are_numbered_once_and_have_a_title_and_tags() -> None:
    adrs = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [path.name[:4] for path in adrs]
    assert numbers == [f"{number:04}" for number in range(1, len(adrs) + 1)]
    for path in adrs:
        lines = path.read_text().splitlines()
        assert lines[0].startswith(f"# {path.name[:4]} · "), path.name
        assert any(line.startswith("tags: ") for line in lines[:4]), path.name
