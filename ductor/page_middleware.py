"""Sessions, sign-in, forgery protection and the content policy: for pages only.

The API knows no session and no cookie. Leaving this out of its path makes that true for every route at once, and
spares each request the work.
"""

from collections.abc import Callable
from typing import Any

from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.middleware.csrf import CsrfViewMiddleware
from django.urls import reverse
from django_htmx.middleware import HtmxMiddleware

from ductor.surfaces import is_page
from tenants.cache import system_keys
from tenants.people.second_factor import has_factor, has_passed

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class PageMiddleware:
    """Django's and htmx's middleware around page requests; all others pass by."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.csrf = CsrfViewMiddleware(AuthenticationMiddleware(MessageMiddleware(self._signed_in)))
        sessions: Any = SessionMiddleware(self.csrf)
        self.page: Any = CSPMiddleware(HtmxMiddleware(sessions))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_page(request.path_info):
            return self.get_response(request)
        response: HttpResponseBase = self.page(request)
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> Any:
        """Refuse a forged form."""
        return self.csrf.process_view(request, view, args, kwargs) if is_page(request.path_info) else None

    def _signed_in(self, request: HttpRequest) -> HttpResponseBase:
        """Pass on; the pages of signing in count attempts under the platform's own cache keys."""
        if settings.DUCTOR_ROLE != "operator" and request.path_info.startswith("/app/"):
            return self.get_response(request)
        with system_keys():
            return self._with_second_factor(request)

    def _with_second_factor(self, request: HttpRequest) -> HttpResponseBase:
        """Let nobody further into the operator surface without a second factor.

        Whoever has none yet may set one up. A session of somebody who has one and did not give it is no half-open
        door to the pages where factors are removed: it ends.
        """
        if settings.DUCTOR_ROLE != "operator" or not request.user.is_authenticated:
            return self.get_response(request)
        if not has_factor(request.user):
            if not request.path_info.startswith("/accounts/"):
                return HttpResponseRedirect(reverse("mfa_activate_totp"))
        elif not has_passed(request):
            logout(request)
            return HttpResponseRedirect(reverse("account_login"))
        return self.get_response(request)
