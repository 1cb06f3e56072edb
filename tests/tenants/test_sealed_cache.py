"""The cache in a table runs nothing that SQL has put there, and keeps what Django promises of a cache."""

import base64
import os
import pickle
from typing import Any

import pytest
from django.core.cache import cache, caches
from django.test import override_settings

from tenants.cache import system_keys
from tenants.sealed_cache import CULL_EVERY
from tests.builders import rows
from tests.database import owner
from tests.races import together

NAME = "system::1:x"


@pytest.fixture(autouse=True)
def platform() -> Any:
    """These values are the platform's own."""
    with system_keys():
        yield


class Planted:
    """What a pickle can do: call anything with anything."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("signature", ["", "0" * 64, "stolen"])
def test_a_pickle_that_sql_put_there_is_not_read(signature: str, tmp_path: Any) -> None:
    cache.set("x", "mine")
    [(sealed,)] = rows("select value from tenants_cache_web where cache_key = %s", NAME)
    planted = base64.b64encode(pickle.dumps(Planted(str(tmp_path / "run")))).decode()
    lead = {"stolen": sealed.partition(":")[0] + ":", "": ""}.get(signature, signature + ":")
    owner().execute("update tenants_cache_web set value = %s", (lead + planted,))
    assert cache.get("x", "absent") == "absent"
    assert not cache.has_key("x")
    assert not (tmp_path / "run").exists()
    pickle.loads(base64.b64decode(planted))
    assert (tmp_path / "run").exists(), "it would have run"


def test_a_value_moved_to_another_key_is_absent() -> None:
    cache.set("x", "mine")
    owner().execute("update tenants_cache_web set cache_key = 'system::1:y'")
    assert cache.get("y") is None


def test_a_value_of_another_secret_is_absent() -> None:
    cache.set("x", "mine")
    with override_settings(SECRET_KEY="another one, as long as it has to be, of somebody else"):
        assert cache.get("x") is None
    assert cache.get("x") == "mine"


@pytest.mark.parametrize("value", [None, 0, "", [1.5, 2.5], {"a": (1, 2)}, "ü" * 100_000])
def test_what_is_kept_is_found(value: Any) -> None:
    cache.set("x", value)
    assert cache.get("x", "absent") == value
    assert cache.get_many(["x", "y"]) == {"x": value}


def test_a_value_ends_can_be_prolonged_forgotten_and_replaced() -> None:
    cache.set("x", 1, timeout=0)
    assert cache.get("x") is None
    cache.set("x", 1, timeout=None)
    assert cache.touch("x", 60)
    owner().execute("update tenants_cache_web set expires = now() - interval '1 s'")
    assert not cache.touch("x", 60)
    assert cache.get("x") is None
    cache.set("x", 2)
    cache.set("x", 3)
    assert (cache.get("x"), cache.incr("x"), cache.get("x")) == (3, 4, 4)
    assert cache.delete("x")
    assert not cache.delete("x")
    cache.set("x", 1)
    cache.clear()
    assert rows("select count(*) from tenants_cache_web") == [(0,)]


def test_of_many_at_once_one_adds() -> None:
    def add() -> bool:
        with system_keys():
            return bool(cache.add("x", 1))

    assert sorted(together(*[add for _ in range(10)])) == [False] * 9 + [True]
    owner().execute("update tenants_cache_web set expires = now() - interval '1 s'")
    assert sorted(together(*[add for _ in range(10)])) == [False] * 9 + [True], "one that has run out is none"


def test_it_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches["default"], "_max_entries", 50)
    cache.set("ended", 1, timeout=0)
    for number in range(2 * CULL_EVERY):
        cache.set(f"n{number}", number, timeout=100 + number)
    assert rows("select count(*) < 50 + %s from tenants_cache_web", CULL_EVERY) == [(True,)]
    assert cache.get(f"n{2 * CULL_EVERY - 1}") == 2 * CULL_EVERY - 1
    assert cache.get("n0") is None
