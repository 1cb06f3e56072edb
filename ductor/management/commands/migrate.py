"""Django's own `migrate`, which django-tenants shadows with one that aborts at a tenant without a schema."""

from django.core.management.commands.migrate import Command

__all__ = ["Command"]
