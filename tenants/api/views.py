"""The base of every view of the tenant API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast
from uuid import UUID

from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from tenants.api.authentication import AttachedKey
from tenants.api.cursors import write_cursor
from tenants.api.description import Operation, PageRequest
from tenants.api.errors import RequestInvalid
from tenants.api.parsing import StrictJSONParser
from tenants.api.permissions import Permitted
from tenants.permissions import Permission
from tenants.principals import Principal
from tenants.scope import require_attached

Row = TypeVar("Row")


class TenantResource(APIView):
    """A resource of the attached tenant.

    A subclass describes in `operations` what each method takes and answers; who may call it follows from there. A
    method without an operation is nobody's, a permission of None is any credential's.
    """

    operations: ClassVar[Mapping[str, Operation]] = {}
    permissions: ClassVar[dict[str, Permission | None]] = {}
    authentication_classes = [AttachedKey]
    permission_classes = [Permitted]
    parser_classes = [StrictJSONParser]
    renderer_classes = [JSONRenderer]
    # Without `options`, which would describe the view: it is refused with 405 like any method that is not there.
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.permissions = {method: operation.permission for method, operation in cls.operations.items()}

    @property
    def tenant_id(self) -> UUID:
        """The attached tenant."""
        return require_attached()

    @property
    def principal(self) -> Principal:
        """Who acts: the key of the request."""
        return cast(Principal, self.request.user)

    @property
    def operation(self) -> Operation:
        """The operation that the request calls."""
        method = self.request.method or ""
        return self.operations["GET" if method == "HEAD" else method]

    def read_query(self) -> dict[str, Any]:
        """Return the query parameters as values.

        Raises:
            RequestInvalid: one is unknown, given twice or out of its bounds.
        """
        return self.operation.read_query(self.request.query_params)

    def read_body(self) -> Mapping[str, Any]:
        """Return the body of a request without query parameters.

        Raises:
            RequestInvalid: the body does not keep the operation's schema, or there is a query parameter.
        """
        self.read_query()
        body = self.operation.body
        assert body is not None, "an operation that reads a body describes it"
        return body.read(self.request)

    def refuse_idempotency_key(self, instead: str) -> None:
        """Refuse the header `Idempotency-Key` where it would promise what this operation does not keep.

        Raises:
            RequestInvalid: it is there; `instead` says what serves.
        """
        if "Idempotency-Key" in self.request.headers:
            raise RequestInvalid.parameter("Idempotency-Key", "unknown", instead)

    def page(
        self,
        rows: Sequence[Row],
        wanted: PageRequest,
        *,
        listing: str,
        document: Callable[[Row], dict[str, Any]],
        place: Callable[[Row], UUID | str],
    ) -> Response:
        """Answer with a page of `rows`, of which one more than wanted was asked for."""
        page, has_more = rows[: wanted.limit], len(rows) > wanted.limit
        cursor = write_cursor(tenant_id=self.tenant_id, listing=listing, place=place(page[-1])) if has_more else None
        return Response({"data": [document(row) for row in page], "next_cursor": cursor, "has_more": has_more})
