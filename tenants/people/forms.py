"""The form with which an invited person makes an account."""

from typing import Any

from allauth.account.forms import SignupForm
from allauth.core import context
from django import forms
from django.core.exceptions import ValidationError

from tenants.people.offers import offer_of


class InvitedSignupForm(SignupForm):
    """Asks for a name and a password; the address is the invitation's."""

    name = forms.CharField(max_length=200, required=False, label="Name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offer = offer_of(context.request)
        if offer is not None:
            self.fields["email"].initial = offer.email
            self.fields["email"].widget.attrs["readonly"] = True

    def clean_email(self) -> str:
        email: str = super().clean_email()
        offer = offer_of(context.request)
        if offer is None or email != offer.email:
            raise ValidationError("This invitation is for another address.", code="other_address")
        return email

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        if not name.isprintable():
            raise ValidationError("A name holds printable characters only.", code="not_printable")
        return name

    def custom_signup(self, request: Any, user: Any) -> None:
        super().custom_signup(request, user)
        user.name = self.cleaned_data.get("name", "")
        user.save(update_fields=["name"])
