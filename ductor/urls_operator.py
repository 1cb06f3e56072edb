"""The operator surface: another process, another database role, another secret."""

from django.urls import path

from ductor import metrics, public

urlpatterns = [
    path("metrics", metrics.scrape, name="metrics"),
    path("health/live", public.live, name="health-live"),
    path("health/ready", public.ready, name="health-ready"),
    path("problems/<slug:slug>", public.explain_problem, name="problem"),
]

handler400 = "ductor.problems.bad_request"
handler403 = "ductor.problems.permission_denied"
handler404 = "ductor.problems.page_not_found"
handler500 = "ductor.problems.server_error"
