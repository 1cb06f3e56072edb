"""The tenant surface."""

from django.urls import include, path

from ductor import public

urlpatterns = [
    path("api/v1/", include("workflows.api.urls")),
    path("health/live", public.live, name="health-live"),
    path("health/ready", public.ready, name="health-ready"),
    path("problems/<slug:slug>", public.explain_problem, name="problem"),
]

handler400 = "ductor.problems.bad_request"
handler403 = "ductor.problems.permission_denied"
handler404 = "ductor.problems.page_not_found"
handler500 = "ductor.problems.server_error"
