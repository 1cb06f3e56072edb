"""Which tables are made where: the accounts' tables in both schemas, all else in `public` only."""

from typing import Any

# In the order of their dependencies; `admin` (its log) is the operator surface's alone.
LOGIN_APPS = ("contenttypes", "auth", "people", "account", "mfa", "sessions", "admin")
OPERATORS_ALIAS = "operators"


class AccountsRouter:
    """Django's hook: may a model of this app be made in the database of this alias?"""

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        if db == OPERATORS_ALIAS:
            return app_label in LOGIN_APPS
        return False if app_label == "admin" else None
