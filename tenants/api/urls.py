"""Routes of the boundary's own resources, below `/api/v1/`."""

from django.urls import path

from tenants.api.account import Me, Usage
from tenants.api.audit import Audit
from tenants.api.keys import KeyRevocation, Keys
from tenants.api.policy import Policy

urlpatterns = [
    path("me", Me.as_view(), name="me"),
    path("usage", Usage.as_view(), name="usage"),
    path("policy", Policy.as_view(), name="policy"),
    path("keys", Keys.as_view(), name="keys"),
    path("keys/<str:key_id>/revoke", KeyRevocation.as_view(), name="key-revoke"),
    path("audit", Audit.as_view(), name="audit"),
]
