"""Whether this process can do its work now: what a load balancer asks before it sends anybody."""

import functools

from django.db.migrations.loader import MigrationLoader

from tenants.store import query


def unready() -> str:
    """Return '' if the database takes writes and has every table that this code expects, else what is amiss.

    Raises:
        Unavailable: the database does not answer.
    """
    ((read_only,),) = query("select current_setting('transaction_read_only')::bool from ductor_now()")
    if read_only:
        return "the database takes no writes"
    applied = set(query("select app, name from public.django_migrations"))
    return "migrations are missing" if expected_migrations() - applied else ""


@functools.cache
def expected_migrations() -> frozenset[tuple[str, str]]:
    """Return (app, name) of every migration that this process's code brings."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
