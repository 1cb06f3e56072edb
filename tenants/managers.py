"""Tenant-filtering managers: the first guard, in Python.

A queryset carries the tenant that was attached when it was made. The filter's value is an expression that compares
again when the statement is compiled, so that a lazy queryset can't run for nobody or for somebody else.
"""

from typing import Any, ClassVar
from uuid import UUID

from django.db import connections, models
from django.db.models.expressions import Value

from tenants.db.roles import sees_all
from tenants.errors import ScopeConflict, ScopeMissing
from tenants.identity import new_id
from tenants.scope import attached


class AttachedTenant(Value):
    """The id of the tenant attached when the query was made; refuses to be compiled for another one."""

    def __init__(self, tenant_id: UUID) -> None:
        super().__init__(tenant_id, output_field=models.UUIDField())

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        now = attached()
        if now is None:
            raise ScopeMissing("A query made for a tenant was evaluated after its attachment ended.")
        if now != self.value:
            raise ScopeConflict("A query made for one tenant was evaluated while another one is attached.")
        return super().as_sql(compiler, connection)


class TenantQuerySet(models.QuerySet):
    """A queryset of one tenant's rows."""

    def delete(self) -> Any:
        """Refuse: rows of a tenant are removed by verbs, which name the tenant in every statement."""
        raise TypeError("Tenant rows are deleted by verbs, not by QuerySet.delete(): its collector drops the tenant.")


class TenantManager(models.Manager.from_queryset(TenantQuerySet)):  # type: ignore[misc]
    """Filters by the attached tenant and fails closed: without one it raises.

    For the operator's and the owner's processes, none attached means all tenants, as in their row policies.
    """

    def get_queryset(self) -> TenantQuerySet:
        queryset: TenantQuerySet = super().get_queryset()
        tenant_id = attached()
        if tenant_id is not None:
            return queryset.filter(tenant_id=AttachedTenant(tenant_id))
        if sees_all(connections[queryset.db]):
            return queryset
        raise ScopeMissing


class TenantRow(models.Model):
    """A row that belongs to one tenant.

    Django sees one column as the primary key; the database's own leads with `tenant_id`, made by the migration
    operation `TenantTable`, and so does every unique and foreign key.
    """

    tenant: models.ForeignKey = models.ForeignKey(
        "tenants.Tenant", on_delete=models.PROTECT, db_constraint=False, db_index=False, related_name="+"
    )

    objects: ClassVar[Any] = TenantManager()

    class Meta:
        abstract = True
        base_manager_name = "objects"
        default_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save under the attached tenant, which also fills an absent `tenant_id`.

        Raises:
            ScopeMissing: no tenant is attached.
            ScopeConflict: the row belongs to another tenant.
        """
        tenant_id = attached()
        if tenant_id is None:
            raise ScopeMissing
        if self.tenant_id is None:  # type: ignore[attr-defined]
            self.tenant_id = tenant_id
        elif self.tenant_id != tenant_id:
            raise ScopeConflict
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse, as `TenantQuerySet.delete` does."""
        raise TypeError("Tenant rows are deleted by verbs, not by Model.delete().")

    def _do_update(self, base_qs: Any, *args: Any, **kwargs: Any) -> Any:
        return super()._do_update(base_qs.filter(tenant_id=self.tenant_id), *args, **kwargs)  # type: ignore[misc]


class TenantModel(TenantRow):
    """A tenant's row with an id of its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)

    class Meta(TenantRow.Meta):
        abstract = True


class OnePerTenant(TenantRow):
    """A table with one row a tenant: the tenant is the key."""

    tenant: models.OneToOneField = models.OneToOneField(  # type: ignore[assignment]
        "tenants.Tenant", on_delete=models.PROTECT, db_constraint=False, primary_key=True, related_name="+"
    )

    class Meta(TenantRow.Meta):
        abstract = True
