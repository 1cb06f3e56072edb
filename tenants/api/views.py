"""The base of every view of the tenant API."""

from typing import ClassVar, cast
from uuid import UUID

from rest_framework.renderers import JSONRenderer
from rest_framework.views import APIView

from tenants.api.authentication import AttachedKey
from tenants.api.parsing import StrictJSONParser
from tenants.api.permissions import Permitted
from tenants.permissions import Permission
from tenants.principals import Principal
from tenants.scope import require_attached


class TenantResource(APIView):
    """A resource of the attached tenant. A subclass says in `permissions` what each method needs.

    None there means any credential.
    """

    permissions: ClassVar[dict[str, Permission | None]] = {}
    authentication_classes = [AttachedKey]
    permission_classes = [Permitted]
    parser_classes = [StrictJSONParser]
    renderer_classes = [JSONRenderer]
    # Without `options`, which would describe the view: it is refused with 405 like any method that is not there.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    @property
    def tenant_id(self) -> UUID:
        """The attached tenant."""
        return require_attached()

    @property
    def principal(self) -> Principal:
        """Who acts: the key of the request."""
        return cast(Principal, self.request.user)
