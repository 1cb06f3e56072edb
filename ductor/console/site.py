"""The admin site: who may come in, what its pages may load, and where they are."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.views import logout as allauth_logout
from csp.decorators import csp_update
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect
from unfold.dataclasses import SearchResult
from unfold.sites import UnfoldAdminSite

from tenants.standings import list_standings

View = Callable[..., HttpResponseBase]

# Unfold's scripts evaluate the expressions in its templates, and its styles stand in its pages (ADR 0016).
WIDER_POLICY = {"script-src": "'unsafe-eval'", "style-src": "'unsafe-inline'"}
FOUND_AT_ONCE = 20


class OperatorSite(UnfoldAdminSite):
    """Django's admin site with pages of our own instead of registered models."""

    enable_nav_sidebar = True

    def has_permission(self, request: HttpRequest) -> bool:
        """Whoever is in the operators' own table; the second factor was asked for by the page middleware before."""
        return bool(
            request.user.is_authenticated and request.user.is_active and getattr(request.user, "is_staff", False)
        )

    def admin_view(self, view: View, cacheable: bool = False) -> View:  # type: ignore[override]
        """Let operators in and send others to sign in; forged forms are refused by the page middleware."""

        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if self.has_permission(request):
                return view(request, *args, **kwargs)
            away = redirect_to_login(request.get_full_path(), reverse("account_login"))["Location"]
            # htmx would follow a redirect unseen and put the sign-in page into the place of a fragment.
            return HttpResponseClientRedirect(away) if getattr(request, "htmx", False) else HttpResponseRedirect(away)

        return csp_update(WIDER_POLICY)(never_cache(guarded))

    def get_urls(self) -> list[Any]:
        """Our own pages alone: nothing of Django's admin is reachable that is not in this list."""
        from ductor.console.urls import pages

        return [
            *(path(route, self.admin_view(view), name=name) for route, view, name in pages()),
            path("search/", self.admin_view(self.search), name="search"),
            path("logout/", self.logout, name="logout"),
        ]

    def logout(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseBase:  # type: ignore[override]
        """Sign out, by a form of this site only."""
        answer: HttpResponseBase = allauth_logout(request)
        return answer

    @property
    def search(self) -> View:  # type: ignore[override]
        """The palette: tenants whose slug begins with what was typed."""
        return require_safe(_search)


site = OperatorSite(name="admin")


def show(request: HttpRequest, template: str, context: dict[str, Any], status: int = 200) -> HttpResponse:
    """Render a page of the console; `title` is what stands above it."""
    request.current_app = site.name  # type: ignore[attr-defined]
    return render(request, f"console/{template}", {**site.each_context(request), **context}, status=status)


def _search(request: HttpRequest) -> HttpResponse:
    typed = request.GET.get("s", "").strip().lower()
    if not typed:
        return HttpResponse()
    found = [
        SearchResult(
            title=tenant.slug,
            description=tenant.name or tenant.service_class,
            link=reverse("admin:tenant", args=[tenant.slug]),
            icon="apartment",
        )
        for tenant in list_standings(prefix=typed[:48], limit=FOUND_AT_ONCE)
    ]
    page = Paginator(found, FOUND_AT_ONCE).page(1)
    context = {"page_obj": page.paginator, "results": page, "page_counter": 0, "execution_time": 0}
    return render(request, "unfold/helpers/command_results.html", context)
