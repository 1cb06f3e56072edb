"""Stored definitions: a workflow gets a row per tenant at its first start, and never changes under its version."""

import json
from typing import Any
from uuid import UUID

from tenants.identity import new_id
from tenants.scope import scope_of
from tenants.store import loaded, query
from workflows.errors import DefinitionChanged
from workflows.formats import known_definition


def ensure_definition(
    *,
    tenant_id: UUID,
    name: str,
    version: int,
    checksum: str,
    graph: dict[str, Any],
    input_schema: dict[str, Any] | None,
) -> bool:
    """Store one version of a workflow for the tenant, or find it stored; False where another transaction does so now.

    A transaction that is left open after a first start must delay nobody, so none waits for another's insert: the
    advisory lock says that there is one, and that one stores the row.

    Raises:
        DefinitionChanged: this version is stored with another shape.
        FormatUnknown: this version is stored in a format of a newer Ductor.
    """
    find = "select checksum, graph from workflows_definition where tenant_id = %s and name = %s and version = %s"
    with scope_of(tenant_id):
        stored = query(find, [tenant_id, name, version])
        if not stored:
            if not _may_store(tenant_id, name, version):
                return False
            _insert(tenant_id, name, version, checksum, graph, input_schema)
            stored = query(find, [tenant_id, name, version])
    found, document = stored[0]
    known_definition(loaded(document), workflow=name, version=version)
    if found != checksum:
        raise DefinitionChanged(
            f"{name} version {version} is stored with another shape; give the changed shape a new version.",
            workflow=name,
            version=version,
        )
    return True


def _may_store(tenant_id: UUID, name: str, version: int) -> bool:
    ((free,),) = query(
        "select pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"ductor.definition:{tenant_id}:{name}:{version}"]
    )
    return bool(free)


def _insert(
    tenant_id: UUID, name: str, version: int, checksum: str, graph: dict[str, Any], input_schema: dict[str, Any] | None
) -> None:
    schema = None if input_schema is None else json.dumps(input_schema)
    query(
        "insert into workflows_definition (tenant_id, id, name, version, checksum, graph, input_schema, created_at)"
        " values (%s, %s, %s, %s, %s, %s, %s, ductor_now()) on conflict do nothing",
        [tenant_id, new_id(), name, version, checksum, json.dumps(graph), schema],
    )
