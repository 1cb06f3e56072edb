"""What every act of the console has in common: a page of its own that says what will happen, a reason, one verb."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from ductor.console.site import show
from tenants.errors import Conflict, Forbidden, Invalid, VersionMismatch
from tenants.queries import TenantView

# Refusals that the operator can do something about are said on the page; all others are the middleware's to answer.
_ANSWERED = (Conflict, Forbidden, Invalid, VersionMismatch)

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Act:
    """One act: its form, what it will do, and the verb.

    `effects` tells in sentences what the values would do. With `preview` they are shown after the form is filled in and
    before anything happens; without, the form asks for nothing but a reason and they stand above it.
    """

    title: str
    button: str
    form: type[forms.Form]
    effects: Callable[[Values], list[str]]
    run: Callable[[Values], HttpResponseBase]
    back: str
    tenant: TenantView | None = None
    initial: Values = field(default_factory=dict)
    preview: bool = True
    danger: bool = False


def perform(request: HttpRequest, act: Act) -> HttpResponseBase:
    """Show the act's page, or do it when the operator has seen the effects, given a reason and confirmed."""
    if request.method != "POST":
        return _page(request, act, act.form(initial=dict(act.initial)))
    form = act.form(request.POST, initial=dict(act.initial))
    if not form.is_valid():
        return _page(request, act, form, status=400)
    if act.preview and "confirmed" not in request.POST:
        editing = "edit" in request.POST
        return _page(request, act, form, confirm=not editing)
    try:
        return act.run(form.cleaned_data)
    except _ANSWERED as refusal:
        form.add_error(None, refusal.message)
        return _page(request, act, form, status=refusal.http_status)


def _page(
    request: HttpRequest, act: Act, form: forms.Form, *, confirm: bool = False, status: int = 200
) -> HttpResponseBase:
    effects = [] if act.preview else act.effects({})
    chosen: list[tuple[Any, str]] = []
    if confirm:
        values = form.cleaned_data
        effects = act.effects(values)
        chosen = [(bound.label, _words(values[bound.name])) for bound in form if not bound.is_hidden]
    context = {
        "title": act.title,
        "act": act,
        "tenant": act.tenant,
        "form": form,
        "effects": effects,
        "confirm": confirm,
        "chosen": chosen,
    }
    return show(request, "act.html", context, status=status)


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "nothing"
    return "–" if value in (None, "") else str(value)
