"""The tables of the boundary. Reads and writes go through the verbs and reads of this app."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django_tenants.models import DomainMixin, TenantMixin

from tenants.identity import new_id
from tenants.managers import OnePerTenant, TenantModel


class ServiceClass(models.TextChoices):
    """The closed list that metric labels come from (DESIGN D18)."""

    SYSTEM = "system"
    FREE = "free"
    STANDARD = "standard"
    PREMIUM = "premium"


class TenantStatus(models.TextChoices):
    """Whether a tenant may act."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    CLOSING = "closing"


class Tenant(TenantMixin):
    """One customer, or the system itself. Not a tenant row: it is what tenant rows point to."""

    auto_create_schema = False

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.CharField(max_length=48, unique=True)
    name = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=16, choices=TenantStatus, default=TenantStatus.ACTIVE)
    service_class = models.CharField(max_length=16, choices=ServiceClass, default=ServiceClass.STANDARD)
    created_at = models.DateTimeField()


class Domain(DomainMixin):
    """A host name that a tenant is reached under; checked against the credential, never instead of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)


class Policy(OnePerTenant):
    """What an operator set for a tenant: without this row the tenant admits nothing.

    The tenant's own limits, where it set some, only tighten the operator's: the load row is held to the lower ones.
    """

    max_outstanding = models.IntegerField()
    max_leases = models.IntegerField()
    weight = models.IntegerField(default=1)
    guaranteed_leases = models.IntegerField(default=0)
    own_max_outstanding = models.IntegerField(null=True)
    own_max_leases = models.IntegerField(null=True)
    version = models.IntegerField(default=1)
    updated_at = models.DateTimeField()


class Load(OnePerTenant):
    """One row a tenant: exact counters and the limits they are held to. The tenant's latch (DESIGN section 5)."""

    outstanding = models.IntegerField(default=0)
    leased = models.IntegerField(default=0)
    max_outstanding = models.IntegerField()
    max_leases = models.IntegerField()
    weight = models.IntegerField(default=1)
    guaranteed_leases = models.IntegerField(default=0)
    frozen = models.SmallIntegerField(default=0)


class Turn(TenantModel):
    """A tenant's place in the fair order of one queue."""

    queue = models.CharField(max_length=128)
    key = models.BigIntegerField(default=0)
    blocked = models.SmallIntegerField(default=1)
    below_floor = models.BooleanField(default=False)
    queued = models.IntegerField(default=0)
    waiting = models.IntegerField(default=0)
    expected_us = models.BigIntegerField(default=100_000)
    next_due_at = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)
    completed = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    cancelled = models.BigIntegerField(default=0)


class ApiKey(TenantModel):
    """A hashed credential of a tenant."""

    name = models.CharField(max_length=128)
    prefix = models.CharField(max_length=16)
    hashed_key = models.CharField(max_length=150)
    scopes = ArrayField(models.CharField(max_length=32))
    created_at = models.DateTimeField()
    created_by: models.JSONField = models.JSONField()
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)


class Member(TenantModel):
    """One person in one tenant. The person's account is of another table, which no tenant's row points into."""

    person_id = models.UUIDField()
    email = models.CharField(max_length=254)
    name = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=16)
    joined_at = models.DateTimeField()


class Invitation(TenantModel):
    """An offer of membership to one address; only the digest of its token is kept."""

    email = models.CharField(max_length=254)
    role = models.CharField(max_length=16)
    hashed_token = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    created_by: models.JSONField = models.JSONField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)


class Act(TenantModel):
    """One act of a person, key or command on a tenant's things (DESIGN D17). Immutable."""

    at = models.DateTimeField()
    principal: models.JSONField = models.JSONField()
    act = models.CharField(max_length=64)
    target_kind = models.CharField(max_length=32)
    target_id = models.CharField(max_length=128)
    reason = models.CharField(max_length=1000, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    before: models.JSONField = models.JSONField(null=True)
    after: models.JSONField = models.JSONField(null=True)


class Queue(models.Model):
    """A queue of the platform. Belongs to no tenant; its clock is the sequence `tenants_clock_<name>`."""

    name = models.CharField(max_length=128, primary_key=True)
    created_at = models.DateTimeField()


class Listener(models.Model):
    """An idle worker that wants a NOTIFY when a turn of its queue becomes ready. Belongs to no tenant."""

    worker = models.CharField(max_length=200, primary_key=True)
    queues = ArrayField(models.CharField(max_length=128))
    expires_at = models.DateTimeField()


CUSTOMER_CLASSES = tuple(value for value in ServiceClass.values if value != ServiceClass.SYSTEM)
