"""API keys: who has which, a new one shown once, and taking one back."""

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from ductor.pages.access import TenantPage
from ductor.pages.forms import KeyForm, ReasonForm
from tenants.errors import Forbidden, Invalid
from tenants.identity import parse_id
from tenants.keys import create_api_key, revoke_api_key
from tenants.permissions import Permission, scopes_within
from tenants.queries import list_keys

PAGE = 50


class KeyList(TenantPage):
    """The tenant's keys, and a form for a new one."""

    permissions: ClassVar[Mapping[str, Permission]] = {"GET": Permission.KEYS_READ, "POST": Permission.KEYS_WRITE}
    place = "app-keys"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Show the keys, newest first."""
        return self._show(self._form())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Make a key. Its text is in this one answer and nowhere else, so there is no redirect that could keep it."""
        form = self._form(request.POST)
        if not form.is_valid():
            return self._show(form, status=400)
        try:
            key, plaintext = create_api_key(
                tenant_id=self.tenant_id,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                expires_at=form.expires_at(),
                principal=self.principal,
            )
        except (Invalid, Forbidden) as refused:
            form.add_error(None, refused.message)
            return self._show(form, status=refused.http_status)
        return self._show(self._form(), made=key, plaintext=plaintext)

    def _form(self, *data: Any) -> KeyForm:
        return KeyForm(*data, scopes=scopes_within(self.principal.permissions))

    def _show(self, form: KeyForm, *, status: int = 200, **made: Any) -> HttpResponse:
        try:
            before = UUID(self.request.GET["before"]) if "before" in self.request.GET else None
        except ValueError:
            raise BadRequest from None
        keys = list_keys(tenant_id=self.tenant_id, before=before, limit=PAGE + 1)
        context = {
            "keys": keys[:PAGE],
            "more": f"{self.request.path}?before={keys[PAGE - 1].id}" if len(keys) > PAGE else "",
            "first": self.request.path if before else "",
            "may_write": self.may(Permission.KEYS_WRITE),
            "form": form,
            "reason": ReasonForm(),
        }
        return self.page("app/keys.html", context | made, status=status)


class KeyRevoke(TenantPage):
    """Takes a key back, from its next request on."""

    permissions: ClassVar[Mapping[str, Permission]] = {"POST": Permission.KEYS_WRITE}

    def post(self, request: HttpRequest, key_id: str) -> HttpResponse:
        """Revoke and show the keys."""
        form = ReasonForm(request.POST)
        reason = form.cleaned_data["reason"] if form.is_valid() else ""
        key = revoke_api_key(tenant_id=self.tenant_id, key_id=parse_id(key_id), principal=self.principal, reason=reason)
        messages.success(request, f"The key {key.name} ({key.prefix}…) opens nothing any more.")
        return redirect("app-keys")
