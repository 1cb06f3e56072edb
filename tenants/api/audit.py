"""`/audit`: who did what to the tenant's things."""

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from tenants.acts import list_acts
from tenants.api import documents
from tenants.api.description import CURSOR, LIMIT, Answer, Operation, Parameter, read_page
from tenants.api.views import TenantResource
from tenants.permissions import Permission

LISTING = "audit"
_WORD = {"type": "string", "maxLength": 64}
_TIME = {"type": "string", "maxLength": 40, "format": "date-time"}

LIST_ACTS = Operation(
    id="listActs",
    tag="audit",
    summary="List acts",
    description="What persons, keys and commands did to the tenant's things, newest first. Acts are immutable.",
    permission=Permission.AUDIT_READ,
    answers={200: Answer("A page of acts.", documents.ACTS, documents.page_example(documents.ACT_EXAMPLE))},
    parameters=(
        Parameter("act", "Only this kind of act.", _WORD, "task.cancel"),
        Parameter(
            "target",
            "Only acts on this thing: `<kind>:<id>`, or a kind alone.",
            {"type": "string", "maxLength": 161},
            "task:01a22d2d-43e2-7788-aa1a-eaf9913042db",
        ),
        Parameter("since", "Not before this moment.", _TIME, "2026-11-30T00:00:00Z"),
        Parameter("until", "Before this moment.", _TIME, "2026-12-01T00:00:00Z"),
        LIMIT,
        CURSOR,
    ),
)


class Audit(TenantResource):
    """`/audit`: the tenant's acts."""

    operations: ClassVar = {"GET": LIST_ACTS}

    def get(self, request: Request) -> Response:
        """List acts, newest first, page by page."""
        given = self.read_query()
        wanted = read_page(given, tenant_id=self.tenant_id, listing=LISTING)
        kind, _, target_id = given.get("target", "").partition(":")
        acts = list_acts(
            tenant_id=self.tenant_id,
            act=given.get("act"),
            target_kind=kind or None,
            target_id=target_id or None,
            since=given.get("since"),
            until=given.get("until"),
            before=wanted.before,
            limit=wanted.limit + 1,
        )
        return self.page(acts, wanted, listing=LISTING, document=documents.act_document, place=lambda act: act.id)
