"""`/problems/<slug>`: a document for programs, a page for people, with what it means and what to do."""

from pathlib import Path
from typing import Any

import pytest
from django.urls import get_resolver

from ductor import problems
from ductor.remedies import REMEDIES
from tests.api.callers import client

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


def ask(slug: str, accept: str | None = None, method: str = "GET") -> Any:
    headers = {} if accept is None else {"Accept": accept}
    return client().generic(method, f"/problems/{slug}", headers=headers)


def test_every_problem_has_a_remedy_and_every_remedy_a_problem() -> None:
    codes = {problem.code for problem in problems.explained().values()}
    assert codes == set(REMEDIES)
    assert [code for code, text in REMEDIES.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("slug", sorted(problems.explained()))
def test_a_problem_is_explained_to_programs_and_to_people(slug: str) -> None:
    problem = problems.explained()[slug]
    document = ask(slug).json()
    assert document == {
        "type": f"/problems/{slug}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "remedy": REMEDIES[problem.code],
    }
    page = ask(slug, BROWSER)
    assert page["Content-Type"] == "text/html; charset=utf-8"
    for text in (problem.title, problem.code, str(problem.status)):
        assert text in page.content.decode()


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/*", "", "nonsense"])
def test_who_asks_for_no_page_gets_the_document(accept: str | None) -> None:
    answer = ask("not-found", accept)
    assert answer["Content-Type"] == "application/json"
    assert answer["Vary"] == "Accept"


@pytest.mark.parametrize("slug", ["no-such", "x" * 5000, "<script>"])
def test_no_such_problem_is_not_found_and_echoes_nothing(slug: str) -> None:
    answer = ask(slug, BROWSER)
    assert answer.status_code in (401, 404)
    assert slug.encode() not in answer.content


def test_only_reading() -> None:
    assert ask("not-found", BROWSER, "POST").status_code == 405
    assert ask("not-found", BROWSER, "HEAD").content == b""


def test_both_surfaces_have_the_pages_and_their_style() -> None:
    for surface in ("ductor.urls", "ductor.urls_operator"):
        assert get_resolver(surface).resolve("/problems/not-found").url_name == "problem"
    assert "public/plain.css" in Path("templates/public/problem.html").read_text()
    answer = client().get("/static/public/plain.css")
    assert answer.status_code == 200
    answer.close()
