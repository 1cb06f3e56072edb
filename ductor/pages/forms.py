"""What people type into tenant pages, checked before a verb sees it."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from tenants.permissions import SCOPES, Role
from workflows.states import State

# A reason is stored and shown to people: control characters and overrides of direction would rewrite their screen.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_WORKFLOW = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,127}", re.ASCII)
MAX_LIMIT = 100_000_000
SPANS = {"30": "30 days", "90": "90 days", "365": "1 year", "": "never"}


def check_text(text: str) -> None:
    """Refuse what must not reach another person's screen."""
    if _UNSAFE.search(text):
        raise ValidationError("Only printable characters, on one line.", code="unsafe")


class ReasonForm(forms.Form):
    """Why an act is done; kept in the audit."""

    reason = forms.CharField(max_length=1000, required=False, label="Reason", help_text="Kept in the audit.")

    def clean_reason(self) -> str:
        reason: str = self.cleaned_data["reason"]
        check_text(reason)
        return reason


class TaskFilter(forms.Form):
    """Which tasks a list shows."""

    state = forms.ChoiceField(choices=[("", "All states"), *((s.value, s.value) for s in State)], required=False)
    workflow = forms.CharField(max_length=128, required=False, label="Workflow")
    key = forms.CharField(max_length=128, required=False, label="Key")

    def clean_workflow(self) -> str:
        return _matching(self.cleaned_data["workflow"], _WORKFLOW, "A workflow's name has letters, digits and _ . : -")

    def clean_key(self) -> str:
        return _matching(self.cleaned_data["key"], _KEY, "A key is printable ASCII without blanks.")


class ActFilter(forms.Form):
    """Which audited acts a list shows."""

    act = forms.CharField(max_length=64, required=False, label="Act")
    target = forms.CharField(max_length=128, required=False, label="Target's id")
    since = forms.DateField(required=False, label="From", widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label="To", widget=forms.DateInput(attrs={"type": "date"}))

    def clean_act(self) -> str:
        return _matching(self.cleaned_data["act"], _WORKFLOW, "An act is named as in task.cancel.")

    def clean_target(self) -> str:
        return _matching(self.cleaned_data["target"], _KEY, "An id has printable ASCII characters only.")


class KeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(
        max_length=128, label="Name", help_text="What the key is for: letters, digits and _ . : -, as in ci-runner."
    )
    scopes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, label="Scopes", help_text="What the key may do; never more than you may."
    )
    expires = forms.ChoiceField(choices=list(SPANS.items()), required=False, initial="90", label="Expires after")

    def __init__(self, *args: Any, scopes: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["scopes"]
        field.choices = [(scope, scope) for scope in sorted(set(scopes) & SCOPES)]

    def expires_at(self) -> datetime | None:
        """Return the moment from which the key opens nothing, or None."""
        days = self.cleaned_data["expires"]
        return datetime.now(UTC) + timedelta(days=int(days)) if days else None


class InviteForm(forms.Form):
    """An invitation; `roles` are those that the inviter may give."""

    email = forms.CharField(max_length=254, label="E-mail address", widget=forms.EmailInput)
    role = forms.ChoiceField(label="Role", initial=Role.VIEWER.value)

    def __init__(self, *args: Any, roles: Iterable[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["role"]
        field.choices = [(role, role) for role in roles]


class PolicyForm(ReasonForm):
    """Limits that a tenant sets for itself; empty ones leave the operator's in force."""

    own_max_outstanding = forms.IntegerField(
        min_value=1, max_value=MAX_LIMIT, required=False, label="Outstanding tasks, at most"
    )
    own_max_leases = forms.IntegerField(min_value=1, max_value=MAX_LIMIT, required=False, label="Leases, at most")
    version = forms.IntegerField(min_value=0, max_value=2**62, widget=forms.HiddenInput)

    field_order = ("own_max_outstanding", "own_max_leases", "reason", "version")


def _matching(text: str, pattern: re.Pattern[str], message: str) -> str:
    if text and not pattern.fullmatch(text):
        raise ValidationError(message, code="invalid")
    return text
