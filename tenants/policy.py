"""What operators set for a tenant: limits, weight, freezes; and how a tenant tightens its own limits."""

from collections.abc import Collection, Mapping
from uuid import UUID

from tenants.audit import record
from tenants.errors import LimitInvalid, PolicyMissing, VersionMismatch
from tenants.identity import SYSTEM_TENANT_ID
from tenants.principals import Principal
from tenants.queries import PolicyView, get_policy
from tenants.scope import scope_of
from tenants.store import call

MAXIMA = {"max_outstanding": 100_000_000, "max_leases": 100_000, "weight": 1_000, "guaranteed_leases": 100_000}
DEFAULT_MAX_OUTSTANDING = 1_000
DEFAULT_MAX_LEASES = 20

OWN = {"own_max_outstanding": "max_outstanding", "own_max_leases": "max_leases"}

FREEZES = {"admission": 1, "claims": 2, "timers": 4, "signals": 8}


def set_tenant_policy(
    *,
    tenant_id: UUID,
    max_outstanding: int,
    max_leases: int,
    weight: int = 1,
    guaranteed_leases: int = 0,
    principal: Principal,
    reason: str = "",
) -> PolicyView:
    """Set a tenant's limits: non-terminal tasks, concurrent leases, its weight and its guaranteed leases.

    Lowering a limit below present use kills nothing: running leases stay, new ones are refused until below.

    Raises:
        LimitInvalid: a number is out of its bounds, more leases are guaranteed than allowed, or it is the system,
            whose limits are the platform's own.
        TenantNotFound: there is no such tenant.
    """
    wanted = {
        "max_outstanding": max_outstanding,
        "max_leases": max_leases,
        "weight": weight,
        "guaranteed_leases": guaranteed_leases,
    }
    _check_limits(tenant_id, wanted)
    with scope_of(tenant_id):
        before = _policy_or_none(tenant_id)
        call("tenants_set_policy", tenant_id, max_outstanding, max_leases, weight, guaranteed_leases)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="policy.set",
            target_kind="policy",
            target_id=str(tenant_id),
            reason=reason,
            before=before and {name: getattr(before, name) for name in wanted},
            after=wanted,
        )
        return get_policy(tenant_id=tenant_id)


def set_own_policy(
    *,
    tenant_id: UUID,
    changes: Mapping[str, int | None],
    expected: Collection[int] | None,
    principal: Principal,
    reason: str = "",
) -> PolicyView:
    """Change the limits that a tenant sets for itself (`own_max_outstanding`, `own_max_leases`); None lifts one.

    They only tighten: of the operator's limit and the tenant's own the lower one holds. `expected` names the versions
    of the policy that the change was decided on; None takes the present one.

    Raises:
        LimitInvalid: a number is below 1 or above what the operator allows, or it is the system.
        VersionMismatch: the policy is at another version; `current` names it.
        PolicyMissing: the tenant has no policy.
    """
    _refuse_system(tenant_id)
    with scope_of(tenant_id):
        policy = get_policy(tenant_id=tenant_id)
        if expected is not None and policy.version not in expected:
            raise VersionMismatch("The policy has changed since it was read.", current=policy.version)
        for name, value in changes.items():
            _check_own(name, value, getattr(policy, OWN[name]))
        before = {name: getattr(policy, name) for name in OWN}
        after = {**before, **changes}
        call("tenants_set_own_policy", tenant_id, *(after[name] for name in OWN), policy.version)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="policy.tighten",
            target_kind="policy",
            target_id=str(tenant_id),
            reason=reason,
            before=before,
            after=after,
        )
        return get_policy(tenant_id=tenant_id)


def set_freeze(
    *, tenant_id: UUID, freeze: frozenset[str] | set[str], principal: Principal, reason: str = ""
) -> PolicyView:
    """Freeze exactly these of a tenant's doings: admission, claims, timers, signals; an empty set lifts all.

    Raises:
        LimitInvalid: an unknown name, or the system tenant, without whose work nothing recovers.
        PolicyMissing: the tenant has no policy.
    """
    _refuse_system(tenant_id)
    unknown = set(freeze) - set(FREEZES)
    if unknown:
        raise LimitInvalid(f"What can be frozen is {', '.join(FREEZES)}; got {', '.join(sorted(unknown))}.")
    mask = sum(FREEZES[name] for name in freeze)
    with scope_of(tenant_id):
        ((before,),) = call("tenants_set_freeze", tenant_id, mask)
        record(
            tenant_id=tenant_id,
            principal=principal,
            act="tenant.freeze",
            target_kind="tenant",
            target_id=str(tenant_id),
            reason=reason,
            before={"frozen": frozen_names(before)},
            after={"frozen": frozen_names(mask)},
        )
        return get_policy(tenant_id=tenant_id)


def frozen_names(mask: int) -> list[str]:
    """Return the names in a freeze mask."""
    return [name for name, bit in FREEZES.items() if mask & bit]


def _policy_or_none(tenant_id: UUID) -> PolicyView | None:
    try:
        return get_policy(tenant_id=tenant_id)
    except PolicyMissing:
        return None


def _check_limits(tenant_id: UUID, wanted: dict[str, int]) -> None:
    _refuse_system(tenant_id)
    for name, value in wanted.items():
        least = 0 if name == "guaranteed_leases" else 1
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAXIMA[name]:
            raise LimitInvalid(
                f"{name} takes {least} to {MAXIMA[name]}, got {value!r}.",
                limit=name,
                minimum=least,
                maximum=MAXIMA[name],
            )
    guaranteed_leases, max_leases = wanted["guaranteed_leases"], wanted["max_leases"]
    if guaranteed_leases > max_leases:
        raise LimitInvalid(
            f"guaranteed_leases ({guaranteed_leases}) can't exceed max_leases ({max_leases}).",
            limit="guaranteed_leases",
            maximum=max_leases,
        )


def _check_own(name: str, value: int | None, granted: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and 1 <= value <= granted):
        raise LimitInvalid(
            f"{name} takes 1 to {granted}, what the operator allows, got {value!r}.",
            limit=name,
            minimum=1,
            maximum=granted,
        )


def _refuse_system(tenant_id: UUID) -> None:
    if tenant_id == SYSTEM_TENANT_ID:
        raise LimitInvalid("The system tenant is the platform's own: it has no policy to set and is never frozen.")
