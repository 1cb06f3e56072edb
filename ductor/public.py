"""The few pages that need no credential: liveness, readiness, what each problem means, how the API is called."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from ductor import problems
from ductor.accounts_settings import STRICT_POLICY
from ductor.readiness import unready
from ductor.remedies import REMEDIES

# These pages have no session and no form, and pass no middleware that would set their policy.
POLICY = "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in STRICT_POLICY.items())
_AN_HOUR = "public, max-age=3600"


@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """Say that the process answers; does no I/O."""
    return JsonResponse({"status": "live"})


@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Say that the database answers, takes writes and has this code's tables; else 503."""
    if amiss := unready():
        return JsonResponse({"status": "not ready", "reason": amiss}, status=503, headers={"Retry-After": "5"})
    return JsonResponse({"status": "ready"})


def absent(request: HttpRequest, rest: str = "") -> JsonResponse:
    """Stand where a library has a page that this surface must not have."""
    raise Http404


@require_safe
def explain_problem(request: HttpRequest, slug: str) -> HttpResponse:
    """Explain one problem type, where the `type` of a problem document points to: a page for whoever asks for HTML."""
    problem = problems.explained().get(slug)
    if problem is None:
        raise Http404
    document = {
        "type": f"/problems/{problem.slug}",
        "title": problem.title,
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "remedy": REMEDIES[problem.code],
    }
    answer: HttpResponse
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        answer = _page("public/problem.html", {"problem": document})
    else:
        answer = JsonResponse(document)
    answer["Cache-Control"] = _AN_HOUR
    answer["Vary"] = "Accept"
    return answer


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """Show the API's description, to be read and tried with one's own key."""
    answer = _page("public/api_docs.html", {})
    answer["Cache-Control"] = _AN_HOUR
    return answer


def _page(template: str, context: dict[str, Any]) -> HttpResponse:
    # Without the request: what a page of everybody's shows depends on nobody.
    return HttpResponse(render_to_string(template, context), headers={"Content-Security-Policy": POLICY})
