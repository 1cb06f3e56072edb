from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TenantsConfig(AppConfig):
    """Wires the engine's guard, the grants and the SQL functions to Django's signals."""

    name = "tenants"

    def ready(self) -> None:
        from tenants import checks  # noqa: F401  (importing it registers the check)
        from tenants.db.grants import after_migrate
        from tenants.db.guard import install

        post_migrate.connect(after_migrate)
        install()
