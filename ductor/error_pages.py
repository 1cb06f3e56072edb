"""Refusals, as a page where a person looks at one and as a problem document everywhere else."""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from ductor import problems
from ductor.problems import Problem
from ductor.surfaces import is_page


def answer(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Render a problem for whoever asked."""
    if not is_page(request.path_info):
        return problems.response(problem)
    context = {"problem": problem, "request_id": getattr(request, "request_id", "")}
    return render(request, "errors/problem.html", context, status=problem.status)


def answer_error(request: HttpRequest, error: BaseException) -> HttpResponse:
    """Render what a middleware or a view raised."""
    return answer(request, problems.from_exception(error))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    return answer_error(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    return answer(request, problems.of_status(403))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return answer(request, problems.of_status(404))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the exception is being handled."""
    return answer_error(request, sys.exc_info()[1] or RuntimeError())


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW: a form that this site did not hand to this visitor."""
    return answer(request, problems.of_status(403))
