from django.apps import AppConfig


class RetentionConfig(AppConfig):
    """See the package docstring."""

    name = "retention"
