"""System check over the tables of handler authors' apps: W012 granted to nobody."""

from collections.abc import Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core import checks

from tenants.db.grants import declared


@checks.register("ductor")
def check_grants(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Name each table of an app in DUCTOR_APPS that no `grants.py` lists: every query of it would be refused."""
    listed = declared().tables
    return [
        checks.Warning(
            f"Table {model._meta.db_table!r} of {config.name} is granted to nobody: a handler can't use it.",
            hint=f"List it in TABLES of {config.name}/grants.py, with {{}} if that is meant; then run `migrate`.",
            id="ductor.W012",
        )
        for config in apps.get_app_configs()
        if any(name == config.name or name.startswith(f"{config.name}.") for name in settings.DUCTOR_APPS)
        for model in config.get_models(include_auto_created=True)
        if model._meta.managed and not model._meta.proxy and model._meta.db_table not in listed
    ]
