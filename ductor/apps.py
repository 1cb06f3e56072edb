from django.apps import AppConfig


class DuctorConfig(AppConfig):
    """The composition root as a Django app: its commands, pages and checks."""

    name = "ductor"
