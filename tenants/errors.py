"""Facts that stop an act: one tree of typed errors.

A leaf declares its code, HTTP status and SQLSTATE; its docstring is its default message. SQL functions raise the
SQLSTATE with the typed fields as JSON in DETAIL, and `tenants.store` turns it back into the leaf.
"""

from typing import Any, ClassVar

_BY_SQLSTATE: dict[str, type["DuctorError"]] = {}


class DuctorError(Exception):
    """An act was refused."""

    code: ClassVar[str] = "fault"
    http_status: ClassVar[int] = 500
    sqlstate: ClassVar[str] = ""

    def __init__(self, message: str = "", *, retry_after: float | None = None, **fields: Any) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.retry_after = retry_after
        self.fields = fields
        super().__init__(self.message)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        state = cls.__dict__.get("sqlstate")
        if state:
            if state in _BY_SQLSTATE:
                raise TypeError(f"SQLSTATE {state} belongs to {_BY_SQLSTATE[state].__name__} already")
            _BY_SQLSTATE[state] = cls

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.retry_after, self.fields))


def _rebuild(cls: type[DuctorError], message: str, retry_after: float | None, fields: dict[str, Any]) -> DuctorError:
    return cls(message, retry_after=retry_after, **fields)


def by_sqlstate(sqlstate: str | None) -> type[DuctorError] | None:
    """Return the error class that declared `sqlstate`, or None."""
    return _BY_SQLSTATE.get(sqlstate or "")


def leaves() -> dict[str, type[DuctorError]]:
    """Return every error class that declared a SQLSTATE, by SQLSTATE."""
    return dict(_BY_SQLSTATE)


class NotFound(DuctorError):
    """Nothing here has this id."""

    code = "not_found"
    http_status = 404


class Refused(DuctorError):
    """Not now: a limit stands in the way."""

    http_status = 429


class Conflict(DuctorError):
    """The act does not fit the present state."""

    http_status = 409


class Invalid(DuctorError):
    """The request is not well formed."""

    http_status = 400


class Fault(DuctorError):
    """Something went wrong on our side."""


class TenantNotFound(NotFound):
    """There is no such tenant."""

    sqlstate = "TN404"


class KeyNotFound(NotFound):
    """There is no such API key."""

    sqlstate = "TN405"


class MemberNotFound(NotFound):
    """There is no such member."""

    sqlstate = "TN406"


class InvitationNotFound(NotFound):
    """There is no such invitation, or none that stands for you: it was used or taken back, or has expired."""

    sqlstate = "TN407"


class RateLimited(Refused):
    """Too many requests."""

    code = "rate_limited"
    sqlstate = "TN429"


class Unavailable(Refused):
    """The database can't be reached or did not confirm the act; nothing is known to have changed. Try again."""

    code = "unavailable"
    http_status = 503


class Contended(Unavailable):
    """Others held what this act needs for too long; nothing was changed. Try again."""


class PolicyMissing(Conflict):
    """This tenant has no policy yet, so it admits nothing; an operator must set one."""

    code = "policy_missing"
    sqlstate = "TN409"


class TenantFrozen(Conflict):
    """This tenant is frozen."""

    code = "tenant_frozen"
    sqlstate = "TN423"


class VersionMismatch(DuctorError):
    """This has changed since it was read; read it again and decide anew."""

    code = "version_mismatch"
    http_status = 412
    sqlstate = "TN430"


class SlugTaken(Conflict):
    """This slug is taken or was used before; slugs are never used again."""

    code = "slug_taken"
    sqlstate = "TN410"


class QueueTaken(Conflict):
    """A queue of this name exists."""

    code = "queue_taken"
    sqlstate = "TN411"


class LastOwner(Conflict):
    """A tenant keeps at least one owner; make another member an owner first."""

    code = "last_owner"
    sqlstate = "TN414"


class AlreadyMember(Conflict):
    """This person is a member of the tenant already."""

    code = "already_member"
    sqlstate = "TN415"


class TenantNotFrozen(Conflict):
    """The tenant's admission and claims must be frozen first."""

    code = "tenant_not_frozen"
    sqlstate = "TN432"


class ArchiveMismatch(Conflict):
    """The file is not this tenant's, or contradicts rows of it that are never changed."""

    code = "archive_mismatch"


class NotEntitled(DuctorError):
    """The tenant's plan does not include this."""

    code = "not_entitled"
    http_status = 403
    sqlstate = "TN403"


class Unauthenticated(DuctorError):
    """A valid API key is needed: send `Authorization: Bearer <key>`."""

    code = "unauthenticated"
    http_status = 401


class Forbidden(DuctorError):
    """This credential may not do that."""

    code = "forbidden"
    http_status = 403


class IdentityInvalid(Invalid):
    """The name or id does not follow the rule for names and ids."""

    code = "identity_invalid"
    sqlstate = "TN400"


class LimitInvalid(Invalid):
    """A limit is out of its bounds."""

    code = "limit_invalid"
    sqlstate = "TN422"


class ReasonMissing(Invalid):
    """This act needs a reason, which is kept in the audit."""

    code = "reason_missing"


class ArchiveInvalid(Invalid):
    """This file is no export of a tenant that can be put in here."""

    code = "archive_invalid"
    sqlstate = "TN433"


class QueueUnknown(Invalid):
    """There is no such queue; queues are made by `manage.py ductor queues create`."""

    code = "queue_unknown"
    http_status = 422
    sqlstate = "TN424"


class ScopeMissing(Fault):
    """No tenant is attached: wrap the act in `attach(tenant_id)` and `tenant_scope()`."""

    sqlstate = "TN500"


class ScopeConflict(Fault):
    """Another tenant is attached or bound to this transaction; end that first."""

    sqlstate = "TN501"


class RuleMissing(Fault):
    """A tenant table has no rule for restoring its rows."""


class RoleUnsafe(Fault):
    """The database role may bypass row security; Ductor does not start with it."""

    sqlstate = "TN502"
