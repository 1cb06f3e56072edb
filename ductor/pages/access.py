"""The base of every tenant page: who may open it, and what stands around its content.

Denies by default: a method whose permission a page does not name is refused to everybody.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views import View

from tenants.authentication import Authenticated
from tenants.people.models import Person
from tenants.permissions import Permission
from tenants.principals import Principal


@dataclass(frozen=True, slots=True)
class NavItem:
    """One place of the navigation."""

    label: str
    address: str
    current: bool


_PLACES = (
    ("Overview", "app-overview", Permission.USAGE_READ),
    ("Tasks", "app-tasks", Permission.TASKS_READ),
    ("Usage", "app-usage", Permission.USAGE_READ),
    ("Keys", "app-keys", Permission.KEYS_READ),
    ("Members", "app-members", Permission.MEMBERS_READ),
    ("Audit", "app-audit", Permission.AUDIT_READ),
)


def person_of(request: HttpRequest) -> Person:
    """Return who has signed in."""
    person = request.user
    assert isinstance(person, Person)
    return person


class TenantPage(View):
    """A page of the session's tenant. A subclass says in `permissions` what each method needs."""

    permissions: ClassVar[Mapping[str, Permission]] = {}
    place: ClassVar[str] = ""

    @property
    def authenticated(self) -> Authenticated:
        """Whom the session acts for, as the middleware found at this very request."""
        found: Authenticated = self.request.authenticated  # type: ignore[attr-defined]
        return found

    @property
    def tenant_id(self) -> UUID:
        """The session's tenant."""
        return self.authenticated.tenant_id

    @property
    def principal(self) -> Principal:
        """The person, in its role."""
        return self.authenticated.principal

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method.lower() not in ("get", "post") or not hasattr(self, method.lower()):
            return self.http_method_not_allowed(request)
        permission = self.permissions.get(method)
        if permission is None or not self.principal.may(permission):
            raise PermissionDenied
        return super().dispatch(request, *args, **kwargs)

    def page(self, template: str, context: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
        """Render a page with the navigation that its visitor may use."""
        return render(self.request, template, {**self.shell(), **context}, status=status)

    def shell(self) -> dict[str, Any]:
        """Return what stands around a page's content."""
        places = [place for place in _PLACES if self.principal.may(place[2])]
        return {
            "tenant": self.authenticated.slug,
            "role": self.principal.role,
            "nav": [NavItem(label, reverse(name), name == self.place) for label, name, _ in places],
        }

    def may(self, permission: Permission) -> bool:
        """Say whether the visitor has a permission: what a page offers follows from it, what is refused as well."""
        return self.principal.may(permission)


@dataclass(frozen=True, slots=True)
class Fragment:
    """The part of a page that is asked for again and again while somebody looks at it."""

    html: SafeString
    etag: str

    @classmethod
    def of(cls, request: HttpRequest, template: str, context: Mapping[str, Any]) -> "Fragment":
        """Render a template; it must hold nothing that differs from answer to answer, such as a form's token."""
        html = render_to_string(template, context, request)
        return cls(html, f'"{hashlib.sha256(html.encode()).hexdigest()[:32]}"')

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a repeated question: 304 without a body where the asker's copy still holds."""
        headers = {"ETag": self.etag}
        if request.headers.get("If-None-Match") == self.etag:
            return HttpResponseNotModified(headers=headers)
        return HttpResponse(self.html, headers=headers)
