"""`/policy`: what an operator set for the tenant, and the lower limits that it sets for itself."""

from typing import Any, ClassVar

from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api import documents
from tenants.api.description import Answer, Operation, Parameter
from tenants.api.errors import VersionRequired
from tenants.api.requests import REASON, Body
from tenants.api.views import TenantResource
from tenants.permissions import Permission
from tenants.policy import MAXIMA, OWN, set_own_policy
from tenants.queries import PolicyView, get_policy

OWN_LIMITS = Body(
    "OwnLimits",
    {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "properties": {
            **{
                own: {"type": ["integer", "null"], "minimum": 1, "maximum": MAXIMA[granted]}
                for own, granted in OWN.items()
            },
            "reason": REASON,
        },
    },
    {"own_max_outstanding": 200, "reason": "keep the nightly import small"},
)
GET_POLICY = Operation(
    id="getPolicy",
    tag="policy",
    summary="The tenant's policy",
    description="Limits, weight and guaranteed leases. The ETag holds the version, as `PATCH` needs it.",
    permission=Permission.POLICY_READ,
    answers={
        200: Answer("The policy.", documents.POLICY, documents.POLICY_EXAMPLE, ("ETag",)),
        304: Answer("It is still the one that `If-None-Match` names.", headers=("ETag",)),
    },
    parameters=(
        Parameter(
            "If-None-Match",
            "The ETag that the caller has: answered with 304 while it is the present one.",
            {"type": "string"},
            example='"3"',
            place="header",
        ),
    ),
    problems=("policy_missing",),
)
PATCH_POLICY = Operation(
    id="tightenPolicy",
    tag="policy",
    summary="Tighten own limits",
    description=(
        "Sets limits of the tenant's own, which may only be lower than the operator's; null lifts one, and what is left"
        " out stays. Running tasks are not stopped. Audited."
    ),
    permission=Permission.POLICY_WRITE,
    answers={200: Answer("The policy as it is now.", documents.POLICY, documents.POLICY_EXAMPLE, ("ETag",))},
    parameters=(
        Parameter(
            "If-Match",
            "The ETag of the policy that the change was decided on. Without it 428, with another one 412.",
            {"type": "string"},
            example='"3"',
            place="header",
        ),
    ),
    body=OWN_LIMITS,
    problems=("limit_invalid", "policy_missing", "version_mismatch", "version_required"),
)


class Policy(TenantResource):
    """`/policy`: show it, tighten it."""

    operations: ClassVar = {"GET": GET_POLICY, "PATCH": PATCH_POLICY}

    def get(self, request: Request) -> Response:
        """Show the policy, or say that the caller has it."""
        self.read_query()
        policy = get_policy(tenant_id=self.tenant_id)
        known = [tag.removeprefix("W/") for tag in parse_etags(request.headers.get("If-None-Match", ""))]
        if _etag(policy) in known or known == ["*"]:
            return Response(status=304, headers={"ETag": _etag(policy)})
        return _answer(policy)

    def patch(self, request: Request) -> Response:
        """Change the tenant's own limits, at the version that the caller has seen."""
        changes: dict[str, Any] = dict(self.read_body())
        reason = changes.pop("reason", "")
        policy = set_own_policy(
            tenant_id=self.tenant_id,
            changes={name: None if value is None else int(value) for name, value in changes.items()},
            expected=_expected(request),
            principal=self.principal,
            reason=reason,
        )
        return _answer(policy)


def _answer(policy: PolicyView) -> Response:
    return Response(documents.policy_document(policy), headers={"ETag": _etag(policy)})


def _etag(policy: PolicyView) -> str:
    return f'"{policy.version}"'


def _expected(request: Request) -> frozenset[int] | None:
    """Return the versions in `If-Match`, None for any; a weak or strange tag matches no version.

    Raises:
        VersionRequired: the header is missing.
    """
    header = request.headers.get("If-Match")
    if header is None:
        raise VersionRequired
    tags = parse_etags(header)
    if tags == ["*"]:
        return None
    versions = [tag.strip('"') for tag in tags]
    return frozenset(int(version) for version in versions if version.isascii() and version.isdigit())
