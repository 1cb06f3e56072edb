"""Who may call what: the scopes of the presented key, denied by default."""

from typing import Any, ClassVar

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from tenants.errors import Forbidden, Unauthenticated


class DenyByDefault(BasePermission):
    """Nobody may. What a view gets that declares no permission of its own."""

    def has_permission(self, request: Request, view: Any) -> bool:
        raise Forbidden


class KeyScope(BasePermission):
    """The key needs the scope that the view's `scopes` names for the method; a method without one is nobody's.

    Raises:
        Unauthenticated: the request came without a credential.
        Forbidden: the key lacks the scope.
    """

    safe_methods: ClassVar[dict[str, str]] = {"HEAD": "GET"}

    def has_permission(self, request: Request, view: Any) -> bool:
        method = self.safe_methods.get(request.method or "", request.method or "")
        needed = view.scopes.get(method)
        principal = getattr(request.auth, "principal", None)
        if principal is None:
            raise Unauthenticated
        if needed is None:
            # The method itself is refused with 405 by the view when it has no handler for it.
            return method not in view.allowed_methods
        if needed not in principal.scopes:
            raise Forbidden(f"This key lacks the scope {needed}.", scope=needed)
        return True
