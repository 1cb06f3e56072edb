"""Installs the watcher."""

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class WatchingConfig(AppConfig):
    """Watches every connection of its process."""

    name = "tests.watching"
    label = "test_watching"

    def ready(self) -> None:
        from tests.watching.statements import watch_new

        connection_created.connect(watch_new, dispatch_uid="tests-watching")
