from django.apps import AppConfig


class BenchConfig(AppConfig):
    """See the package docstring. Installed through DUCTOR_APPS by the bench alone."""

    name = "ductor.bench"
    label = "bench"
