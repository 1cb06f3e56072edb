"""Who may call what over HTTP: the permission that a view names for a method, denied by default."""

from typing import Any, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tenants.errors import Forbidden, Unauthenticated
from tenants.permissions import TABLE


class DenyByDefault(BasePermission):
    """Nobody may. What a view gets that declares no permission of its own."""

    def has_permission(self, request: Request, view: Any) -> bool:
        raise Forbidden


class Permitted(BasePermission):
    """The principal needs the permission that the view's `permissions` names for the method.

    A method without one is nobody's; None there means any credential.

    Raises:
        Unauthenticated: the request came without a credential.
        Forbidden: the principal lacks the permission.
    """

    safe_methods: ClassVar[dict[str, str]] = {"HEAD": "GET"}

    def has_permission(self, request: Request, view: Any) -> bool:
        method = self.safe_methods.get(request.method or "", request.method or "")
        principal = getattr(request.auth, "principal", None)
        if principal is None:
            raise Unauthenticated
        if method not in view.permissions:
            # The method itself is refused with 405 by the view when it has no handler for it.
            return method not in view.allowed_methods
        needed = view.permissions[method]
        if needed is not None and not principal.may(needed):
            scope = TABLE[needed][1]
            raise Forbidden(f"This key lacks the scope {scope}.", scope=scope)
        return True
