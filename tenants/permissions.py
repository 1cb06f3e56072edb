"""Who may do what: one table of permission × role × key scope. What is not in it is denied.

A face names the permission of an act; a principal has it by the role of its person in the tenant or by the scopes of
its key. `docs/permissions.md` shows the same table, and a test holds the two together.
"""

from enum import StrEnum

SCOPES = frozenset(
    {
        "tasks:read",
        "tasks:write",
        "signals:write",
        "worker",
        "policy:read",
        "policy:write",
        "budget:read",
        "audit:read",
        "keys:write",
    }
)


class Role(StrEnum):
    """What a person is in a tenant."""

    OWNER = "owner"
    ADMIN = "admin"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AUDITOR = "auditor"


class Permission(StrEnum):
    """One kind of act on one kind of thing."""

    TASKS_READ = "tasks.read"
    TASKS_START = "tasks.start"
    TASKS_CANCEL = "tasks.cancel"
    SIGNALS_SEND = "signals.send"
    WORK_CLAIM = "work.claim"
    USAGE_READ = "usage.read"
    POLICY_READ = "policy.read"
    POLICY_WRITE = "policy.write"
    BUDGET_READ = "budget.read"
    AUDIT_READ = "audit.read"
    KEYS_READ = "keys.read"
    KEYS_WRITE = "keys.write"
    MEMBERS_READ = "members.read"
    MEMBERS_WRITE = "members.write"
    OWNERS_WRITE = "owners.write"


_OWNER, _ADMINS = frozenset({Role.OWNER}), frozenset({Role.OWNER, Role.ADMIN})
_ACTORS, _EVERYONE = _ADMINS | {Role.OPERATOR}, frozenset(Role)
_INSPECTORS = _ADMINS | {Role.AUDITOR}
_NOBODY: frozenset[Role] = frozenset()

# Permission → the roles that have it, and the key scope that gives it ("" where no key can have it).
TABLE: dict[Permission, tuple[frozenset[Role], str]] = {
    Permission.TASKS_READ: (_EVERYONE, "tasks:read"),
    Permission.TASKS_START: (_ACTORS, "tasks:write"),
    Permission.TASKS_CANCEL: (_ACTORS, "tasks:write"),
    Permission.SIGNALS_SEND: (_ACTORS, "signals:write"),
    Permission.WORK_CLAIM: (_NOBODY, "worker"),
    Permission.USAGE_READ: (_EVERYONE, "policy:read"),
    Permission.POLICY_READ: (_EVERYONE, "policy:read"),
    Permission.POLICY_WRITE: (_ADMINS, "policy:write"),
    Permission.BUDGET_READ: (_EVERYONE, "budget:read"),
    Permission.AUDIT_READ: (_INSPECTORS, "audit:read"),
    Permission.KEYS_READ: (_INSPECTORS, "keys:write"),
    Permission.KEYS_WRITE: (_ADMINS, "keys:write"),
    Permission.MEMBERS_READ: (_EVERYONE, ""),
    Permission.MEMBERS_WRITE: (_ADMINS, ""),
    Permission.OWNERS_WRITE: (_OWNER, ""),
}


def of_role(role: str) -> frozenset[Permission]:
    """Return what a person of this role may do; nothing for an unknown role."""
    return frozenset(permission for permission, (roles, _) in TABLE.items() if role in roles)


def of_scopes(scopes: frozenset[str]) -> frozenset[Permission]:
    """Return what a key with these scopes may do."""
    return frozenset(permission for permission, (_, scope) in TABLE.items() if scope and scope in scopes)


def scopes_within(permissions: frozenset[Permission]) -> frozenset[str]:
    """Return the scopes that give nothing beyond these permissions: what their holder may put into a key.

    The scope `worker` is given by whoever may write keys, since no person has its permission.
    """
    given = {scope for scope in SCOPES if of_scopes(frozenset({scope})) <= permissions}
    return frozenset(given | ({"worker"} if Permission.KEYS_WRITE in permissions else set()))
