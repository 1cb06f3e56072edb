"""Django's own `migrate` (django-tenants shadows it with one that aborts at a tenant without a schema), run twice:
for the operators' accounts in their own schema, then for everything in `public`, whose last act are the grants."""

from typing import Any

from django.conf import settings
from django.core.management.commands import migrate

from tenants.people.routers import LOGIN_APPS, OPERATORS_ALIAS


class Command(migrate.Command):
    """Bring both schemas to the newest migration."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate; a named app or database is done alone, as in Django."""
        whole = not options["app_label"] and options["database"] == "default"
        if whole and OPERATORS_ALIAS in settings.DATABASES:
            for label in LOGIN_APPS:
                super().handle(*args, **{**options, "app_label": label, "database": OPERATORS_ALIAS})
        super().handle(*args, **options)
