"""`/me` and `/usage`: who asks, and how much of its limits the tenant uses."""

from typing import ClassVar, cast

from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api import documents
from tenants.api.description import Answer, Operation
from tenants.api.views import TenantResource
from tenants.authentication import Authenticated
from tenants.permissions import Permission
from tenants.queries import get_policy, list_usage
from tenants.scope import scope_of

GET_ME = Operation(
    id="getMe",
    tag="account",
    summary="Who am I",
    description="The tenant, the principal and the permissions that the presented key stands for. Any key may ask.",
    permission=None,
    answers={200: Answer("The caller.", documents.ME, documents.ME_EXAMPLE)},
)
GET_USAGE = Operation(
    id="getUsage",
    tag="account",
    summary="Use against limits",
    description="How many tasks are outstanding and run, beside the limits that hold, and the tenant's work by queue.",
    permission=Permission.USAGE_READ,
    answers={200: Answer("The tenant's own figures.", documents.USAGE, documents.USAGE_EXAMPLE)},
    problems=("policy_missing",),
)


class Me(TenantResource):
    """`/me`: who asks."""

    operations: ClassVar = {"GET": GET_ME}

    def get(self, request: Request) -> Response:
        """Show the caller."""
        self.read_query()
        document = {
            "tenant": cast(Authenticated, request.auth).slug,
            "principal": self.principal.as_json(),
            "permissions": sorted(self.principal.permissions),
            "scopes": sorted(self.principal.scopes),
        }
        return Response(document)


class Usage(TenantResource):
    """`/usage`: the tenant's figures."""

    operations: ClassVar = {"GET": GET_USAGE}

    def get(self, request: Request) -> Response:
        """Show use against limits."""
        self.read_query()
        with scope_of(self.tenant_id):
            policy = get_policy(tenant_id=self.tenant_id)
            queues = list_usage(tenant_id=self.tenant_id)
        return Response(documents.usage_document(policy, queues))
