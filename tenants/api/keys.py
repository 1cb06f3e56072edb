"""`/keys`: a tenant's API keys: list them, make one, revoke one."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from django.utils.dateparse import parse_datetime
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api import documents
from tenants.api.description import CURSOR, LIMIT, Answer, Operation, Parameter, read_page
from tenants.api.errors import RequestInvalid
from tenants.api.requests import NAME, REASON, Body
from tenants.api.views import TenantResource
from tenants.identity import parse_id
from tenants.keys import create_api_key, revoke_api_key
from tenants.permissions import SCOPES, Permission
from tenants.queries import list_keys

LISTING = "keys"
MAX_LIFE = timedelta(days=3660)

NEW_KEY = Body(
    "KeyRequest",
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "scopes"],
        "properties": {
            "name": NAME,
            "scopes": {**documents.SCOPE_LIST, "minItems": 1, "maxItems": len(SCOPES), "uniqueItems": True},
            "expires_at": {"type": "string", "maxLength": 40, "format": "date-time"},
        },
    },
    {"name": "ci", "scopes": ["tasks:read", "tasks:write"], "expires_at": "2035-05-31T00:00:00Z"},
)
REVOCATION = Body(
    "Revocation",
    {"type": "object", "additionalProperties": False, "properties": {"reason": REASON}},
    {"reason": "laptop lost"},
)
KEY_ID = Parameter("key_id", "The key's id.", {"type": "string"}, documents.KEY_EXAMPLE["id"], "path", required=True)

LIST_KEYS = Operation(
    id="listKeys",
    tag="keys",
    summary="List keys",
    description="The tenant's keys without their secrets, newest first; revoked and expired ones as well.",
    permission=Permission.KEYS_READ,
    answers={200: Answer("A page of keys.", documents.KEYS, documents.page_example(documents.KEY_EXAMPLE))},
    parameters=(LIMIT, CURSOR),
)
CREATE_KEY = Operation(
    id="createKey",
    tag="keys",
    summary="Make a key",
    description="Its scopes give no more than its maker has. The key is shown in this answer and never again. Audited.",
    permission=Permission.KEYS_WRITE,
    answers={
        201: Answer(
            "The new key.", documents.NEW_KEY, {**documents.KEY_EXAMPLE, "key": "Zk3vQ9aB.<40 letters and digits>"}
        )
    },
    body=NEW_KEY,
)
REVOKE_KEY = Operation(
    id="revokeKey",
    tag="keys",
    summary="Revoke a key",
    description="It opens nothing from the next request on, in every process. Repeating it changes nothing. Audited.",
    permission=Permission.KEYS_WRITE,
    answers={
        200: Answer(
            "The revoked key.", documents.KEY, {**documents.KEY_EXAMPLE, "revoked_at": "2026-12-01T08:00:00.12Z"}
        )
    },
    parameters=(KEY_ID,),
    body=REVOCATION,
    body_required=False,
)


class Keys(TenantResource):
    """`/keys`: list them, make one."""

    operations: ClassVar = {"GET": LIST_KEYS, "POST": CREATE_KEY}

    def get(self, request: Request) -> Response:
        """List the tenant's keys, newest first, page by page."""
        wanted = read_page(self.read_query(), tenant_id=self.tenant_id, listing=LISTING)
        keys = list_keys(tenant_id=self.tenant_id, before=wanted.before, limit=wanted.limit + 1)
        return self.page(keys, wanted, listing=LISTING, document=documents.key_document, place=lambda key: key.id)

    def post(self, request: Request) -> Response:
        """Make a key and show it, once."""
        self.refuse_idempotency_key("A key is shown once, so that this can't be repeated: revoke a doubled one.")
        body = self.read_body()
        view, key = create_api_key(
            tenant_id=self.tenant_id,
            name=body["name"],
            scopes=body["scopes"],
            expires_at=_expiry(body.get("expires_at")),
            principal=self.principal,
        )
        return Response({**documents.key_document(view), "key": key}, status=201)


class KeyRevocation(TenantResource):
    """`/keys/{key_id}/revoke`: end a key."""

    operations: ClassVar = {"POST": REVOKE_KEY}

    def post(self, request: Request, key_id: str) -> Response:
        """Revoke a key and show it."""
        reason = self.read_body().get("reason", "")
        key = revoke_api_key(tenant_id=self.tenant_id, key_id=parse_id(key_id), principal=self.principal, reason=reason)
        return Response(documents.key_document(key))


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise RequestInvalid.at("/expires_at", "format", "This is no RFC 3339 time with an offset.")
    now = datetime.now(UTC)
    if not now < at <= now + MAX_LIFE:
        raise RequestInvalid.at("/expires_at", "out_of_bounds", "A key ends in the future, within ten years.")
    return at
