"""Django's cache in a table, whose values are signed: nothing is unpickled that this surface did not write.

Django's own backend unpickles whatever stands in the row. Whoever could write a row of it, by SQL alone, would run
code in the process that reads it, and from there reach what that process may read on its machine: more than the tenant
surface's SQL is worth (ADR 0013). Here each value carries a signature by SECRET_KEY over its key and itself; what has
none is as good as absent.
"""

import base64
import hmac
import itertools
import pickle
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.db import BaseDatabaseCache
from django.db import DatabaseError, connections, transaction
from django.utils.crypto import salted_hmac

NEVER = datetime.max.replace(tzinfo=UTC)
CULL_EVERY = 100

# TABLE stands for the name in the settings.
_GET = "select cache_key, value from TABLE where cache_key = any(%s) and expires > %s"
_TOUCH = "update TABLE set expires = %s where cache_key = %s and expires > %s returning 1"
_DELETE = "delete from TABLE where cache_key = %s returning 1"
_SET = """
insert into TABLE as c (cache_key, value, expires) values (%s, %s, %s)
on conflict (cache_key) do update set value = excluded.value, expires = excluded.expires
"""
_ADD = f"{_SET} where c.expires <= %s"
_CULL = "delete from TABLE where expires <= %s"
_CULL_MORE = "delete from TABLE where cache_key in (select cache_key from TABLE order by expires desc offset %s)"


class SealedDatabaseCache(BaseDatabaseCache):
    """A cache on the default database; one statement an operation."""

    def __init__(self, table: str, params: dict[str, Any]) -> None:
        super().__init__(table, params)
        self._table = table
        self._writes = itertools.count(1)

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        """Return a value, or `default`."""
        return self.get_many([key], version).get(key, default)

    def get_many(self, keys: Iterable[Any], version: int | None = None) -> dict[Any, Any]:
        """Return the values that there are."""
        stored = {self.make_and_validate_key(key, version=version): key for key in keys}
        if not stored:
            return {}
        rows = self._run(_GET, [list(stored), datetime.now(UTC)])
        found = {name: _open(name, text) for name, text in rows}
        return {stored[name]: opened[0] for name, opened in found.items() if opened}

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        """Keep a value."""
        self._write(_SET, [], key, value, timeout, version)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Keep a value where there is none; of many at once exactly one does."""
        return self._write(_ADD, [datetime.now(UTC)], key, value, timeout, version)

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Give a value another end."""
        name = self.make_and_validate_key(key, version=version)
        return bool(self._run(_TOUCH, [self._end(timeout), name, datetime.now(UTC)]))

    def delete(self, key: Any, version: int | None = None) -> bool:
        """Forget a value."""
        name = self.make_and_validate_key(key, version=version)
        return bool(self._run(_DELETE, [name]))

    def has_key(self, key: Any, version: int | None = None) -> bool:
        """Say whether there is a value."""
        return bool(self.get_many([key], version))

    def clear(self) -> None:
        """Forget everything."""
        self._run("delete from TABLE", [])

    def _write(self, sql: str, more: list[Any], key: Any, value: Any, timeout: Any, version: int | None) -> bool:
        name = self.make_and_validate_key(key, version=version)
        params = [name, _seal(name, value), self._end(timeout), *more]
        try:
            # One statement needs no transaction of its own; an open one must outlive its failure.
            with transaction.atomic() if connections["default"].in_atomic_block else nullcontext():
                written = bool(self._run(f"{sql} returning 1", params))
        except DatabaseError:
            # A cache may forget: what can't be kept, on a database that only reads for one, is not kept.
            return False
        if next(self._writes) % CULL_EVERY == 0:
            self._cull()
        return written

    def _cull(self) -> None:
        """Remove what has run out, and of more than MAX_ENTRIES those that end first."""
        self._run(_CULL, [datetime.now(UTC)])
        self._run(_CULL_MORE, [self._max_entries])

    def _end(self, timeout: Any) -> datetime:
        at = self.get_backend_timeout(timeout)
        return NEVER if at is None else datetime.fromtimestamp(at, UTC)

    def _run(self, sql: str, params: list[Any]) -> list[Any]:
        with connections["default"].cursor() as cursor:
            cursor.execute(sql.replace("TABLE", self._table), params)
            return list(cursor.fetchall()) if cursor.description else []


def _seal(name: str, value: Any) -> str:
    text = base64.b64encode(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)).decode()
    return f"{_signature(name, text)}:{text}"


def _open(name: str, sealed: str) -> tuple[Any] | None:
    signature, _, text = sealed.partition(":")
    if not hmac.compare_digest(signature.encode(), _signature(name, text).encode()):
        return None
    return (pickle.loads(base64.b64decode(text)),)  # noqa: S301 (signed by us for this very key)


def _signature(name: str, text: str) -> str:
    return salted_hmac("tenants.sealed_cache", f"{name}\n{text}", settings.SECRET_KEY, algorithm="sha256").hexdigest()
