"""The tenant surface."""

from django.urls import include, path
from django.views.generic import RedirectView

from ductor import openapi, public

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="app-overview"), name="home"),
    path("app/", include("ductor.pages.urls")),
    path("api/v1/", include("tenants.api.urls")),
    path("api/v1/", include("workflows.api.urls")),
    path("api/schema", openapi.schema, name="api-schema"),
    path("api/docs/", public.api_docs, name="api-docs"),
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
