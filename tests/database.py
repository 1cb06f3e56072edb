"""Connections of the suite: other roles, the owner's clean-up, and a record of what forgets the tenant."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.signals import connection_created

from ductor.databases import connection_settings, psycopg_parameters
from tenants.db.base import DatabaseWrapper
from tests.watching import statements

_touched = False
_owner: psycopg.Connection[Any] | None = None

CLEAN = """
truncate workflows_task, workflows_taskkey, workflows_step, workflows_partition, workflows_admission,
  workflows_definition, tenants_turn, tenants_apikey, tenants_member, tenants_invitation, tenants_act,
  tenants_listener, workflows_cluster, tenants_domain, people_person, account_emailaddress,
  account_emailconfirmation, mfa_authenticator, django_session, operators.people_person,
  operators.account_emailaddress, operators.account_emailconfirmation, operators.mfa_authenticator,
  operators.django_session, operators.django_admin_log, tenants_cache_web, tenants_cache_worker,
  tenants_cache_operator, django_q_task, django_q_schedule, django_q_ormq;
delete from tenants_policy where tenant_id <> '00000000-0000-7000-8000-000000000000';
delete from tenants_load where tenant_id <> '00000000-0000-7000-8000-000000000000';
delete from tenants_tenant where id <> '00000000-0000-7000-8000-000000000000';
update tenants_load set outstanding = 0, leased = 0, frozen = 0;
select setval(format('%I', 'tenants_clock_' || name)::regclass, 1, false) from tenants_queue;
"""

KEYS_WITHOUT_TENANT = """
select cache_key from (table tenants_cache_web union all table tenants_cache_worker
  union all table tenants_cache_operator) caches
where cache_key !~ '^(system|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}):'
"""


def _note_touch(execute: Any, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    global _touched
    _touched = True
    return execute(sql, params, many, context)


def _watch_touch(connection: Any, **_: Any) -> None:
    if _note_touch not in connection.execute_wrappers:
        connection.execute_wrappers.append(_note_touch)


connection_created.connect(_watch_touch, dispatch_uid="tests-touch")


def begin_test() -> None:
    """Forget what earlier tests sent."""
    global _touched
    _touched = False
    statements.take()


def end_test() -> list[str]:
    """Empty the tables if the test touched the database; returns the statements and cache keys without a tenant."""
    found = statements.take()
    if _touched:
        connections["default"].close()
        found += [key for (key,) in owner().execute(KEYS_WITHOUT_TENANT).fetchall()]
        owner().execute(CLEAN)
    return found


def owner() -> "psycopg.Connection[Any]":
    """Return the owner's own connection, in autocommit: for clean-up, the clock and looks behind the curtain."""
    global _owner
    if _owner is None or _owner.closed:
        _owner = psycopg.connect(**psycopg_parameters(connection_settings("owner")), autocommit=True)
    return _owner


def close_owner() -> None:
    """Close the owner's connection at the end of the run."""
    if _owner is not None:
        _owner.close()


def touch() -> None:
    """Say that this test changed the database by other means than Django's connections of this process."""
    global _touched
    _touched = True


@contextmanager
def as_role(role: str) -> Iterator[None]:
    """Run the block's verbs as another role (web, worker, operator, owner) on a connection of its own."""
    touch()
    before = connections["default"]
    settings = {**before.settings_dict, "ROLE": role, **connection_settings(role)}
    settings["OPTIONS"] = {key: value for key, value in settings["OPTIONS"].items() if key != "pool"}
    wrapper = DatabaseWrapper(settings, "default")
    connections["default"] = wrapper
    try:
        yield
    finally:
        wrapper.close()
        connections["default"] = before
