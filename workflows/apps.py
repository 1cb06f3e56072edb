from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """See the package docstring. Finds every app's `workflows` module once all apps are loaded."""

    name = "workflows"

    def ready(self) -> None:
        from workflows import checks, registry  # noqa: F401  (importing checks registers them)

        registry.autodiscover()
