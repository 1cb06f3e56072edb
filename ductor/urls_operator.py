"""The operator surface: another process, another database role, another secret."""

from django.urls import include, path

from ductor import metrics, public

urlpatterns = [
    path("metrics", metrics.scrape, name="metrics"),
    path("accounts/", include("allauth.account.urls")),
    path("accounts/2fa/", include("allauth.mfa.urls")),
    path("health/live", public.live, name="health-live"),
    path("health/ready", public.ready, name="health-ready"),
    path("problems/<slug:slug>", public.explain_problem, name="problem"),
]

handler400 = "ductor.error_pages.bad_request"
handler403 = "ductor.error_pages.permission_denied"
handler404 = "ductor.error_pages.page_not_found"
handler500 = "ductor.error_pages.server_error"
