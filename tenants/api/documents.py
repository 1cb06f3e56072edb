"""What the boundary's own resources look like as JSON: for each a schema of the document, an example, a writer."""

from datetime import UTC, datetime
from typing import Any

from tenants.acts import ActView
from tenants.api.description import component, page_schema, record
from tenants.api.requests import Schema
from tenants.permissions import SCOPES, Permission
from tenants.policy import frozen_names
from tenants.queries import ApiKeyView, PolicyView, QueueUsage

TIME: Schema = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
ID: Schema = {"type": "string", "format": "uuid"}
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
LIMIT_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 1}
SCOPE_LIST: Schema = {"type": "array", "items": {"type": "string", "enum": sorted(SCOPES)}}

PRINCIPAL = component(
    "Principal",
    record(
        {"kind": {"type": "string", "enum": ["key", "person", "operator", "command", "code", "system"]}}
        | {"id": TEXT, "name": TEXT, "behind": {**TEXT, "description": "The person behind a key, where one is known."}}
    ),
)
PRINCIPAL_EXAMPLE = {"kind": "key", "id": "01a22d2d-4375-73bf-923d-160e89a39066", "name": "ci", "behind": "anna"}

ME = component(
    "Me",
    record(
        {
            "tenant": {**TEXT, "description": "The tenant's slug."},
            "principal": PRINCIPAL,
            "permissions": {"type": "array", "items": {"type": "string", "enum": sorted(Permission)}},
            "scopes": SCOPE_LIST,
        }
    ),
)
ME_EXAMPLE = {
    "tenant": "acme",
    "principal": PRINCIPAL_EXAMPLE,
    "permissions": ["tasks.cancel", "tasks.read", "tasks.start"],
    "scopes": ["tasks:read", "tasks:write"],
}

POLICY = component(
    "Policy",
    record(
        {
            "version": {"type": "integer", "minimum": 1, "description": "Rises with each change; the ETag holds it."},
            "max_outstanding": {**COUNT, "description": "Tasks that have not ended: what the operator allows."},
            "max_leases": {**COUNT, "description": "Tasks that run at once: what the operator allows."},
            "own_max_outstanding": LIMIT_OR_NULL,
            "own_max_leases": LIMIT_OR_NULL,
            "effective_max_outstanding": {**COUNT, "description": "The limit that holds: the lower one of the two."},
            "effective_max_leases": {**COUNT, "description": "The limit that holds: the lower one of the two."},
            "weight": {"type": "integer", "minimum": 1, "description": "The share beside other tenants with work."},
            "guaranteed_leases": COUNT,
            "updated_at": TIME,
        }
    ),
)
POLICY_EXAMPLE = {
    "version": 3,
    "max_outstanding": 1000,
    "max_leases": 20,
    "own_max_outstanding": 200,
    "own_max_leases": None,
    "effective_max_outstanding": 200,
    "effective_max_leases": 20,
    "weight": 1,
    "guaranteed_leases": 0,
    "updated_at": "2026-11-30T15:57:50.949681Z",
}

_OF_QUEUE = {"queue": TEXT, "queued": COUNT, "waiting": COUNT, "completed": COUNT, "failed": COUNT, "cancelled": COUNT}
USAGE = component(
    "Usage",
    record(
        {
            "outstanding": {**COUNT, "description": "Tasks that have not ended."},
            "max_outstanding": {**COUNT, "description": "The limit that holds."},
            "leased": {**COUNT, "description": "Tasks that run."},
            "max_leases": {**COUNT, "description": "The limit that holds."},
            "frozen": {"type": "array", "items": {"enum": ["admission", "claims", "timers", "signals"]}},
            "queues": {"type": "array", "items": record(_OF_QUEUE)},
        }
    ),
)
USAGE_EXAMPLE = {
    "outstanding": 12,
    "max_outstanding": 200,
    "leased": 2,
    "max_leases": 20,
    "frozen": [],
    "queues": [{"queue": "default", "queued": 9, "waiting": 1, "completed": 4711, "failed": 3, "cancelled": 8}],
}

_KEY_MEMBERS: dict[str, Schema] = {
    "id": ID,
    "prefix": {**TEXT, "description": "How the key begins: what tells keys apart in lists."},
    "name": TEXT,
    "scopes": SCOPE_LIST,
    "created_at": TIME,
    "expires_at": TIME_OR_NULL,
    "revoked_at": TIME_OR_NULL,
}
KEY = component("Key", record(_KEY_MEMBERS))
KEYS = page_schema("KeyPage", KEY)
NEW_KEY = component(
    "NewKey", record({**_KEY_MEMBERS, "key": {**TEXT, "description": "The key itself. It is shown this once."}})
)
KEY_EXAMPLE = {
    "id": "01a22d2d-4375-73bf-923d-160e89a39066",
    "prefix": "Zk3vQ9aB",
    "name": "ci",
    "scopes": ["tasks:read", "tasks:write"],
    "created_at": "2026-11-30T15:57:50.949681Z",
    "expires_at": "2035-05-31T00:00:00Z",
    "revoked_at": None,
}

ACT = component(
    "Act",
    record(
        {
            "id": ID,
            "at": TIME,
            "principal": PRINCIPAL,
            "act": TEXT,
            "target": record({"kind": TEXT, "id": TEXT}),
            "reason": TEXT,
            "request_id": TEXT,
            "before": {"description": "How the thing stood before, null where nothing is known."},
            "after": {"description": "How it stood after, null where nothing is known."},
        }
    ),
)
ACTS = page_schema("ActPage", ACT)
ACT_EXAMPLE = {
    "id": "01a22d30-0b1e-7d02-a5a3-8f6b2c1d9e10",
    "at": "2026-11-30T16:00:12.000431Z",
    "principal": PRINCIPAL_EXAMPLE,
    "act": "task.cancel",
    "target": {"kind": "task", "id": "01a22d2d-43e2-7788-aa1a-eaf9913042db"},
    "reason": "order withdrawn",
    "request_id": "01a22d30-0af0-7c55-9a4b-6c2f5c1f2a77",
    "before": {"state": "queued"},
    "after": {"state": "cancelled"},
}


def page_example(item: dict[str, Any]) -> dict[str, Any]:
    """Return an example of a page that holds this one item."""
    return {"data": [item], "next_cursor": None, "has_more": False}


def timestamp(at: datetime | None) -> str | None:
    """Return a time as RFC 3339 in UTC."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def policy_document(policy: PolicyView) -> dict[str, Any]:
    """Return a tenant's policy, without its use: the ETag stands for all of it."""
    names = [name for name in POLICY_EXAMPLE if name != "updated_at"]
    return {name: getattr(policy, name) for name in names} | {"updated_at": timestamp(policy.updated_at)}


def usage_document(policy: PolicyView, queues: list[QueueUsage]) -> dict[str, Any]:
    """Return a tenant's use against the limits that hold."""
    return {
        "outstanding": policy.outstanding,
        "max_outstanding": policy.effective_max_outstanding,
        "leased": policy.leased,
        "max_leases": policy.effective_max_leases,
        "frozen": frozen_names(policy.frozen),
        "queues": [{name: getattr(one, name) for name in _OF_QUEUE} for one in queues],
    }


def key_document(key: ApiKeyView) -> dict[str, Any]:
    """Return a key without its secret."""
    return {
        "id": str(key.id),
        "prefix": key.prefix,
        "name": key.name,
        "scopes": list(key.scopes),
        "created_at": timestamp(key.created_at),
        "expires_at": timestamp(key.expires_at),
        "revoked_at": timestamp(key.revoked_at),
    }


def act_document(act: ActView) -> dict[str, Any]:
    """Return one act of the audit."""
    return {
        "id": str(act.id),
        "at": timestamp(act.at),
        "principal": act.principal,
        "act": act.act,
        "target": {"kind": act.target_kind, "id": act.target_id},
        "reason": act.reason,
        "request_id": act.request_id,
        "before": act.before,
        "after": act.after,
    }
