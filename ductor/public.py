"""The few pages that need no credential: liveness, readiness, and what each problem means."""

from django.db import connection
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from ductor import problems


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Say that the process answers; does no I/O."""
    return JsonResponse({"status": "live"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Say that the database answers and holds Ductor's schema; else 503 as everywhere."""
    with connection.cursor() as cursor:
        cursor.execute("select ductor_now()")
    return JsonResponse({"status": "ready"})


def absent(request: HttpRequest, rest: str = "") -> JsonResponse:
    """Stand where a library has a page that this surface must not have."""
    raise Http404


@require_safe
def explain_problem(request: HttpRequest, slug: str) -> JsonResponse:
    """Explain one problem type; this is where the `type` of a problem document points to."""
    problem = problems.explained().get(slug)
    if problem is None:
        raise Http404
    document = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
    }
    return JsonResponse(document, headers={"Cache-Control": "public, max-age=3600"})
