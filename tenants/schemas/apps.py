from django.apps import AppConfig


class SchemasConfig(AppConfig):
    """See the package docstring."""

    name = "tenants.schemas"
    label = "tenant_schemas"
