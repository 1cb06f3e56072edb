"""How many API requests a tenant may send: counted by each server process for itself, told in each answer's headers.

What a tenant may send is divided by the number of server processes; counters that all of them share come with the
fairness issue. A refused request is not counted and reaches nothing.
"""

import contextlib
import time
from collections.abc import Callable
from math import ceil, floor
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from ductor import problems
from tenants.errors import RateLimited

GetResponse = Callable[[HttpRequest], HttpResponseBase]

WINDOW_SECONDS = 60
# A moment after the count falls below the limit: sums of floats are not exact.
_SAFETY_SECONDS = 0.001


class Outlook(NamedTuple):
    """Where a tenant stands after a request: whether that passed, what is left, seconds until something is."""

    passed: bool
    remaining: int
    seconds: float


class Rates:
    """Counts of many tenants over a sliding window of 60 seconds: of the minute before, the part that overlaps it."""

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self._item = RateLimitItemPerMinute(amount, namespace="api")
        self._storage = _Memory()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)

    def hit(self, tenant_id: UUID) -> Outlook:
        """Count a request of the tenant, or refuse it.

        `seconds` is the time to the end of the present window while requests are left, and else the time until one is.
        """
        passed = self._limiter.hit(self._item, tenant_id.hex)
        previous, _, current, life = self._storage.get_sliding_window(self._item.key_for(tenant_id.hex), WINDOW_SECONDS)
        left = life - WINDOW_SECONDS
        remaining = max(0, self.amount - floor(previous * left / WINDOW_SECONDS + current))
        return Outlook(passed, remaining, left if remaining else self._wait(previous, current, left))

    def _wait(self, previous: int, current: int, left: float) -> float:
        if current < self.amount:
            wait = left - (self.amount - current) * WINDOW_SECONDS / previous
        else:
            wait = left + WINDOW_SECONDS * (1 - self.amount / current)
        return max(wait, 0.0) + _SAFETY_SECONDS


class _Memory(MemoryStorage):
    """The library's storage, which forgets old counts once a window instead of by a new thread every 10 ms."""

    _next_sweep = 0.0

    def _MemoryStorage__schedule_expiry(self) -> None:
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + WINDOW_SECONDS
            # Another thread may forget a count at the same moment; what is left is met by the next sweep.
            with contextlib.suppress(KeyError):
                self._MemoryStorage__expire_events()  # type: ignore[attr-defined]


class RateMiddleware:
    """Holds each tenant's API requests to the rate, and says on every answer to one where the tenant stands."""

    def __init__(self, get_response: GetResponse) -> None:
        if settings.DUCTOR_ROLE == "operator":
            raise MiddlewareNotUsed
        self.get_response = get_response
        self.rates = Rates(settings.DUCTOR_PROCESS_API_RATE)
        self.policy = f'"api";q={self.rates.amount};w={WINDOW_SECONDS}'

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        found = getattr(request, "authenticated", None)
        if found is None or not request.path_info.startswith("/api/"):
            return self.get_response(request)
        outlook = self.rates.hit(found.tenant_id)
        response = self.get_response(request) if outlook.passed else self._refusal(outlook)
        response["RateLimit-Policy"] = self.policy
        response["RateLimit"] = f'"api";r={outlook.remaining};t={ceil(outlook.seconds)}'
        return response

    def _refusal(self, outlook: Outlook) -> HttpResponseBase:
        return problems.response_of(
            RateLimited(
                f"More than {self.rates.amount} requests within {WINDOW_SECONDS} seconds.",
                retry_after=outlook.seconds,
                policy="api",
                limit=self.rates.amount,
                window=WINDOW_SECONDS,
            )
        )
