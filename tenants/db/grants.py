"""Grants: what each role may do, applied after every migrate so that a function made anew keeps its callers.

Each app lists its own in `<app>/grants.py`: `TABLES` maps a table to privileges by role, `OPERATORS_TABLES` likewise
those in schema `operators`, `FUNCTIONS` maps a function to the roles that may execute it, `ENGINE_FUNCTIONS` names the
SECURITY DEFINER ones, which ductor_engine owns; `ADOPTED_TABLES` names other libraries'
tables that the app put under row security; what an app does not have it leaves out. What is not listed is not granted;
a test compares the lists with the catalogue.
"""

import importlib
from dataclasses import dataclass, field
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.db import connections
from django.utils.module_loading import module_has_submodule

from tenants.db.functions import reinstall_changed
from tenants.db.roles import ENGINE, OPERATOR, WEB, WORKER

PLAIN_ROLES = (WEB, WORKER, OPERATOR)


@dataclass
class Grants:
    """All grants of the installed apps."""

    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    engine_functions: set[str] = field(default_factory=set)
    operators_tables: dict[str, dict[str, str]] = field(default_factory=dict)
    adopted: set[str] = field(default_factory=set)


def declared() -> Grants:
    """Collect the lists of every app's `grants` module."""
    grants = Grants()
    for config in apps.get_app_configs():
        if config.module is not None and module_has_submodule(config.module, "grants"):
            module = importlib.import_module(f"{config.name}.grants")
            grants.tables.update(module.TABLES)
            grants.operators_tables.update(getattr(module, "OPERATORS_TABLES", {}))
            grants.functions.update(getattr(module, "FUNCTIONS", {}))
            grants.engine_functions.update(getattr(module, "ENGINE_FUNCTIONS", ()))
            grants.adopted.update(getattr(module, "ADOPTED_TABLES", ()))
    return grants


def apply_grants(cursor: Any) -> None:
    """Bring tables and functions to exactly the declared grants; what does not exist yet is passed over."""
    grants = declared()
    everyone = ", ".join(("public", ENGINE, *PLAIN_ROLES))
    for schema, listed in (("public", grants.tables), ("operators", grants.operators_tables)):
        cursor.execute(
            "select relname from pg_class where relnamespace = to_regnamespace(%s) and relkind in ('r', 'p')", [schema]
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f'revoke all on table {schema}."{table}" from {everyone}')
            for role, privileges in listed.get(table, {}).items():
                cursor.execute(f'grant {privileges} on table {schema}."{table}" to {role}')
    cursor.execute("select proname, oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace")
    for name, signature in cursor.fetchall():
        if name in grants.engine_functions:
            cursor.execute(f"alter function {signature} owner to {ENGINE}")
        cursor.execute(f"revoke all on function {signature} from {everyone}")
        roles = set(grants.functions.get(name, ())) | {ENGINE}
        cursor.execute(f"grant execute on function {signature} to {', '.join(sorted(roles))}")


def after_migrate(sender: AppConfig, app_config: AppConfig, using: str, plan: Any = None, **_: Any) -> None:
    """Post-migrate receiver: changed functions, queues and grants, once, after the last app."""
    if app_config is not [config for config in apps.get_app_configs() if config.models_module][-1]:
        return
    from tenants.queues import ensure_queues

    with connections[using].cursor() as cursor:
        cursor.execute(
            "select to_regclass('tenants_queue') is not null and to_regprocedure('ductor_now()') is not null"
        )
        if not cursor.fetchone()[0]:
            return
        reinstall_changed(cursor)
        ensure_queues(cursor, settings.DUCTOR_QUEUES)
        apply_grants(cursor)
