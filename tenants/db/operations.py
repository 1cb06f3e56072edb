"""Migration operations for row security, composite keys, immutability and SQL functions (DESIGN D2, D16)."""

from collections.abc import Sequence
from typing import Any

from django.db.migrations.operations.base import Operation

from tenants.db.functions import drop_sql, install_sql
from tenants.identity import SYSTEM_TENANT_ID

_SETTING = "nullif(current_setting('ductor.tenant_id', true), '')::uuid"


class TableOperation(Operation):
    """An operation on the table of one model that changes nothing in Django's own state."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, model: str) -> None:
        self.model = model

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave Django's state as it is: these are facts of the database alone."""

    def table(self, app_label: str, state: Any) -> str:
        """Return the model's quoted table name."""
        return f'"{state.apps.get_model(app_label, self.model)._meta.db_table}"'

    def describe(self) -> str:
        return f"{type(self).__name__} on {self.model}"


class TenantTable(TableOperation):
    """Make a table a tenant table: keys that lead with `tenant_id`, row security enabled and forced, one policy a role.

    `key` is the primary key's columns after `tenant_id`, `unique` further unique column lists, `indexes` full
    `(columns, where)` pairs of plain indexes, `storage` the table's storage parameters, `linked` whether a foreign key
    to the tenant is kept (not on hot tables: every insert would lock the tenant's row).
    """

    def __init__(
        self,
        model: str,
        key: Sequence[str] = ("id",),
        unique: Sequence[Sequence[str]] = (),
        indexes: Sequence[tuple[str, str, str]] = (),
        storage: str = "",
        linked: bool = True,
    ) -> None:
        super().__init__(model)
        self.key, self.unique, self.indexes, self.storage, self.linked = key, unique, indexes, storage, linked

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (
            type(self).__name__,
            [self.model],
            {
                "key": self.key,
                "unique": self.unique,
                "indexes": self.indexes,
                "storage": self.storage,
                "linked": self.linked,
            },
        )

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, to_state)
        name = table.strip('"')
        run = schema_editor.execute
        columns = ", ".join(["tenant_id", *self.key])
        run(f"alter table {table} drop constraint {name}_pkey, add constraint {name}_pkey primary key ({columns})")
        for number, extra in enumerate(self.unique, 1):
            run(
                f"alter table {table} add constraint {name}_unique_{number} unique ({', '.join(['tenant_id', *extra])})"
            )
        for suffix, on, where in self.indexes:
            run(f"create index {name}_{suffix} on {table} ({on})" + (f" where {where}" if where else ""))
        if self.storage:
            run(f"alter table {table} set ({self.storage})")
        if self.linked:
            run(
                f"alter table {table} add constraint {name}_tenant foreign key (tenant_id) "
                "references tenants_tenant (id)"
            )
        for statement in row_security(table):
            run(statement)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, from_state)
        for policy in ("tenant", "operator", "owner", "engine"):
            schema_editor.execute(f"drop policy {policy}_rows on {table}")
        schema_editor.execute(f"alter table {table} no force row level security, disable row level security")


def row_security(table: str) -> list[str]:
    """Return the statements that put a table under row security: each role has exactly one policy."""
    own = f"tenant_id = {_SETTING}"
    all_or_own = f"{_SETTING} is null or {own}"
    policies = [
        ("tenant_rows", "ductor_web, ductor_worker", own),
        ("operator_rows", "ductor_operator", all_or_own),
        ("owner_rows", "ductor_owner", "true"),
        ("engine_rows", "ductor_engine", "true"),
    ]
    statements = [f"alter table {table} enable row level security, force row level security"]
    for name, roles, condition in policies:
        statements.append(f"create policy {name} on {table} to {roles} using ({condition}) with check ({condition})")
    return statements


class AdoptedTable(Operation):
    """Make a library's table a tenant table: a `tenant_id` that fills itself, keys that lead with it, row security.

    The library's own statements know no tenant: the column takes it from the transaction, the policies see to the
    rest. `table` is listed in ADOPTED_TABLES of an app's `grants`. `unique` and `indexes` as in `TenantTable`; with
    `platform` a row that is made for no tenant belongs to the system tenant, else it is refused.
    """

    reduces_to_sql = True
    reversible = True

    def __init__(
        self,
        table: str,
        key: str = "id",
        unique: Sequence[Sequence[str]] = (),
        indexes: Sequence[tuple[str, str, str]] = (),
        platform: bool = False,
    ) -> None:
        self.table, self.key, self.unique, self.indexes, self.platform = table, key, unique, indexes, platform

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        known = {"key": self.key, "unique": self.unique, "indexes": self.indexes, "platform": self.platform}
        return (type(self).__name__, [self.table], known)

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave Django's state as it is: the library's model has no such column."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table, run = self.table, schema_editor.execute
        system = f"'{SYSTEM_TENANT_ID}'::uuid"
        # What stood there before had no tenant.
        run(f"alter table {table} add column tenant_id uuid not null default {system}")
        default = f"coalesce({_SETTING}, {system})" if self.platform else _SETTING
        run(f"alter table {table} alter column tenant_id set default {default}")
        run(f"alter table {table} drop constraint {table}_pkey, add primary key (tenant_id, {self.key})")
        for number, extra in enumerate(self.unique, 1):
            columns = ", ".join(["tenant_id", *extra])
            run(f"alter table {table} add constraint {table}_unique_{number} unique ({columns})")
        for suffix, on, where in self.indexes:
            run(f"create index {table}_{suffix} on {table} ({on})" + (f" where {where}" if where else ""))
        for statement in row_security(table):
            run(statement)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table, run = self.table, schema_editor.execute
        for policy in ("tenant", "operator", "owner", "engine"):
            run(f"drop policy {policy}_rows on {table}")
        run(f"alter table {table} no force row level security, disable row level security")
        # Keys and indexes that name the column go with it.
        run(f"alter table {table} drop column tenant_id, add primary key ({self.key})")

    def describe(self) -> str:
        return f"Adopt table {self.table}"


class TenantForeignKey(TableOperation):
    """A composite foreign key `(tenant_id, <column>)` to `(tenant_id, id)`: a row can't point into another tenant."""

    def __init__(self, model: str, column: str, target: str) -> None:
        super().__init__(model)
        self.column, self.target = column, target

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (type(self).__name__, [self.model, self.column, self.target], {})

    def _name(self, table: str) -> str:
        return f"{table.strip(chr(34))}_{self.column}_tenant"

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, to_state)
        schema_editor.execute(
            f"alter table {table} add constraint {self._name(table)} foreign key (tenant_id, {self.column}) "
            f"references {self.target} (tenant_id, id)"
        )

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, from_state)
        schema_editor.execute(f"alter table {table} drop constraint {self._name(table)}")


class Immutable(TableOperation):
    """Refuse UPDATE, DELETE and TRUNCATE of a table's rows to every role but the table's owner."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, to_state)
        schema_editor.execute(
            f"create trigger immutable_rows before update or delete on {table} "
            "for each row execute function tenants_refuse_change()"
        )
        schema_editor.execute(
            f"create trigger immutable_table before truncate on {table} "
            "for each statement execute function tenants_refuse_change()"
        )

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        table = self.table(app_label, from_state)
        schema_editor.execute(f"drop trigger immutable_rows on {table}")
        schema_editor.execute(f"drop trigger immutable_table on {table}")


class SqlFunction(Operation):
    """Install `<app>/sql/<name>_v<version>.sql`; backwards installs the version before, or drops the function."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, name: str, version: int) -> None:
        self.name, self.version = name, version

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (type(self).__name__, [self.name, self.version], {})

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave Django's state as it is."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema_editor.execute(install_sql(app_label, self.name, self.version), params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if self.version > 1:
            schema_editor.execute(install_sql(app_label, self.name, self.version - 1), params=None)
        else:
            schema_editor.execute(drop_sql(app_label, self.name), params=None)

    def describe(self) -> str:
        return f"Install SQL function {self.name}, version {self.version}"
