"""The fields of acts. What a value may be is the verb's to say; a form asks only for its type."""

from typing import Any

from django import forms

from tenants.models import CUSTOMER_CLASSES
from tenants.permissions import SCOPES, Role
from tenants.policy import DEFAULT_MAX_LEASES, DEFAULT_MAX_OUTSTANDING, MAXIMA

FREEZE_TEXTS = {
    "admission": "admission: no task is started",
    "claims": "claims: no task is run",
    "timers": "timers: nothing becomes due",
    "signals": "signals: none is taken in",
}


class ReasonForm(forms.Form):
    """Every act of an operator has a reason."""

    use_required_attribute = True

    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Kept in the audit, where the tenant's auditors read it.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "label_suffix": ""})
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])


def _limit(name: str, label: str, help_text: str, least: int = 1) -> forms.IntegerField:
    return forms.IntegerField(min_value=least, max_value=MAXIMA[name], label=label, help_text=help_text)


class PolicyForm(ReasonForm):
    """A tenant's limits. The version is that of the policy which the operator saw."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    max_outstanding = _limit("max_outstanding", "Unfinished tasks", "So many may wait or run at once.")
    max_leases = _limit("max_leases", "Leases", "So many may run at once.")
    weight = _limit("weight", "Weight", "Share beside other tenants; 1 is the usual one.")
    guaranteed_leases = _limit("guaranteed_leases", "Guaranteed leases", "Below these it goes before others.", least=0)


class TenantForm(ReasonForm):
    """A new tenant and its first policy."""

    slug = forms.CharField(max_length=48, help_text="a-z, 0-9 and '-', beginning with a letter; never used again.")
    name = forms.CharField(max_length=200, required=False, help_text="What people call it.")
    service_class = forms.ChoiceField(choices=[(name, name) for name in CUSTOMER_CLASSES], initial="standard")
    max_outstanding = forms.IntegerField(
        min_value=1, max_value=MAXIMA["max_outstanding"], initial=DEFAULT_MAX_OUTSTANDING, label="Unfinished tasks"
    )
    max_leases = forms.IntegerField(
        min_value=1, max_value=MAXIMA["max_leases"], initial=DEFAULT_MAX_LEASES, label="Leases"
    )


class FreezeForm(ReasonForm):
    """What of a tenant's doings stands still; nothing chosen lifts all freezes."""

    frozen = forms.MultipleChoiceField(
        choices=list(FREEZE_TEXTS.items()), required=False, widget=forms.CheckboxSelectMultiple, label="Frozen"
    )


class KeyForm(ReasonForm):
    """A new API key of the tenant."""

    name = forms.CharField(max_length=128, help_text="Letters, digits and _ . : - ; how the key is told apart.")
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in sorted(SCOPES)], widget=forms.CheckboxSelectMultiple
    )
    days = forms.IntegerField(
        min_value=1, max_value=3650, required=False, label="Days", help_text="After so many it expires; empty: never."
    )


class InviteForm(ReasonForm):
    """An invitation by mail."""

    email = forms.EmailField(max_length=254)
    role = forms.ChoiceField(choices=[(role.value, role.value) for role in Role], initial=Role.OWNER.value)
