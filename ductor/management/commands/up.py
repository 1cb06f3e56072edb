"""`manage.py up` as Django lists it; manage.py itself starts the same session before Django."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ductor.up import session
from ductor.up.options import add_arguments


class Command(BaseCommand):
    help = "Prepare the database, start both surfaces and a cluster, and show them at work on a demo job."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        flags = [f"--{name}" for name in ("once", "no-demo", "reset", "yes") if options[name.replace("-", "_")]]
        flags += [f"--port={options['port']}", f"--operator-port={options['operator_port']}"]
        if options["workers"]:
            flags.append(f"--workers={options['workers']}")
        code = session.main(flags)
        if code:
            raise CommandError("up ended with an error", returncode=code)
