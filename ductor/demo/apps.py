from django.apps import AppConfig


class DemoConfig(AppConfig):
    """An app as a handler author would write it: it has workflows and no models."""

    name = "ductor.demo"
    label = "demo"
