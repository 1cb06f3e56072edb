"""The operator surface: another process, another database role, another secret."""

from django.urls import include, path
from django.views.generic import RedirectView

from ductor import metrics, public
from ductor.console.site import site

# Operators come and go by `manage.py ductor operators` alone: no mail opens an account, and no mailbox is a way in.
_BY_MAIL = ("signup/", "email/", "confirm-email/", "password/reset/", "password/set/", "reauthenticate/code/")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("metrics", metrics.scrape, name="metrics"),
    *[path(f"accounts/{page}", public.absent) for page in _BY_MAIL],
    *[path(f"accounts/{page}<path:rest>", public.absent) for page in _BY_MAIL],
    path("accounts/", include("allauth.account.urls")),
    path("admin/", site.urls),
    path("accounts/2fa/", include("allauth.mfa.urls")),
    path("health/live", public.live, name="health-live"),
    path("health/ready", public.ready, name="health-ready"),
    path("problems/<slug:slug>", public.explain_problem, name="problem"),
]

handler400 = "ductor.error_pages.bad_request"
handler403 = "ductor.error_pages.permission_denied"
handler404 = "ductor.error_pages.page_not_found"
handler500 = "ductor.error_pages.server_error"
