"""THE END: leased cleanup, tombstones, holds, export and purge.

The topmost room of the apps: it removes finished tasks under a fenced cleanup lease and leaves immutable tombstones.
It may import from `workflows`, `ledger` and `tenants`; nothing but the composition root imports it.
"""
