"""One function builds every cache key: the tenant's id, or `system`, leads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tenants.errors import ScopeMissing
from tenants.scope import attached

_system: ContextVar[bool] = ContextVar("ductor_system_cache_keys", default=False)


@contextmanager
def system_keys() -> Iterator[None]:
    """Let the block use keys of the platform itself (cluster statistics, for one), named `system`."""
    token = _system.set(True)
    try:
        yield
    finally:
        _system.reset(token)


def key_function(key: object, key_prefix: str, version: int) -> str:
    """Build the stored key `<tenant or system>:<prefix>:<version>:<key>` (Django's KEY_FUNCTION).

    Raises:
        ScopeMissing: no tenant is attached and the caller is not in a `system_keys()` block.
    """
    if _system.get():
        owner = "system"
    else:
        tenant_id = attached()
        if tenant_id is None:
            raise ScopeMissing("A cache key needs a tenant: attach one, or use tenants.cache.system_keys().")
        owner = str(tenant_id)
    return f"{owner}:{key_prefix}:{version}:{key}"
