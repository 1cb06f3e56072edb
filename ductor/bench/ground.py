"""What is measured on: tenants by the thousand, made by the owner in one statement, and their tasks by the verbs."""

import json
from typing import Any
from uuid import UUID

import psycopg

from ductor.databases import connection_settings, psycopg_parameters
from tenants.identity import new_id
from tenants.keys import generator
from tenants.principals import Principal
from workflows.admission import MAX_BATCH, NewTask, enqueue

PRINCIPAL = Principal.code()
PAYLOAD = {"order": 123, "note": "abcdefghijklmnopqrstuvwxyz"}


def connect(role: str) -> "psycopg.Connection[Any]":
    """Open a connection of its own as a role, in autocommit."""
    return psycopg.connect(**psycopg_parameters(connection_settings(role)), autocommit=True)


def make_tenants(owner: "psycopg.Connection[Any]", group: str, count: int, max_leases: int = 1000) -> list[UUID]:
    """Make `count` tenants named `<group>-<n>` with a policy each; returns their ids."""
    owner.execute(
        "insert into tenants_tenant (id, slug, schema_name, name, status, service_class, created_at)"
        " select gen_random_uuid(), %s || '-' || n, %s || '_' || n, '', 'active', 'standard', ductor_now()"
        " from generate_series(1, %s) n",
        [group, group, count],
    )
    ids = [row[0] for row in owner.execute("select id from tenants_tenant where slug like %s", [f"{group}-%"])]
    owner.execute(
        "insert into tenants_load"
        " (tenant_id, outstanding, leased, frozen, max_outstanding, max_leases, weight, guaranteed_leases)"
        " select id, 0, 0, 0, 10000000, %s, 1, 0 from unnest(%s::uuid[]) id",
        [max_leases, ids],
    )
    owner.execute(
        "insert into tenants_policy"
        " (tenant_id, version, updated_at, max_outstanding, max_leases, weight, guaranteed_leases)"
        " select id, 1, ductor_now(), 10000000, %s, 1, 0 from unnest(%s::uuid[]) id",
        [max_leases, ids],
    )
    return ids


def make_key(owner: "psycopg.Connection[Any]", tenant_id: UUID) -> str:
    """Make a key of a tenant that may start tasks; returns its plain text."""
    plaintext, prefix, hashed = generator.generate()
    owner.execute(
        "insert into tenants_apikey (tenant_id, id, name, prefix, hashed_key, scopes, created_at, created_by)"
        " values (%s, %s, 'bench', %s, %s, '{tasks:write}', ductor_now(), %s)",
        [tenant_id, new_id(), prefix, hashed, json.dumps(PRINCIPAL.as_json())],
    )
    return plaintext


def fill(tenants: list[UUID], each: int, queue: str, workflow: str = "bench-noop") -> int:
    """Enqueue `each` tasks for every tenant; returns how many."""
    for tenant_id in tenants:
        left = each
        while left > 0:
            size = min(left, MAX_BATCH)
            tasks = [NewTask(workflow, 1, PAYLOAD, queue=queue) for _ in range(size)]
            enqueue(tenant_id=tenant_id, tasks=tasks, principal=PRINCIPAL)
            left -= size
    return each * len(tenants)
