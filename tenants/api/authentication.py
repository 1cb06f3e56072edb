"""REST framework's view of the credential that the middleware has already checked."""

from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from tenants.principals import Principal


class AttachedKey(BaseAuthentication):
    """`request.user` is the key's principal, `request.auth` the authenticated key.

    The tenant has to be attached before the first line of a view and until the last chunk of a streamed body, which
    is longer than REST framework lives; so the middleware looks the key up, and this class only hands it on.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Any] | None:
        found = getattr(request._request, "authenticated", None)
        return None if found is None else (found.principal, found)

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="ductor"'
