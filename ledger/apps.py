from django.apps import AppConfig


class LedgerConfig(AppConfig):
    """See the package docstring."""

    name = "ledger"
