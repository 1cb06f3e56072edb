"""`manage.py ductor …`: the operator's command. Assembles the groups; every failure has one line and an exit code."""

import sys
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError, InterfaceError
from django_typer.management import TyperCommand

from ductor.commands import audit, bench, doctor, initdb, keys, members, operators, queues, screen, tasks
from ductor.commands import tenants as tenant_commands
from tenants.errors import DuctorError
from tenants.store import translate


class Command(TyperCommand, name="ductor", no_args_is_help=True):
    """Operate Ductor: tenants, keys, tasks, queues, the database and its health."""

    # An operator's answer is not the place for a handler author's warnings; `check`, `up` and `qcluster` show them.
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Run a command line; wrong usage is told before the options have been read."""
        screen.note_json("--json" in argv)
        super().run_from_argv(argv)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        """Turn typed errors and wrong usage into an exit code; all else is django-typer's."""
        code = self._reported(error)
        if code is None:
            return super().__exit__(kind, error, trace)
        super().__exit__(None, None, None)
        if getattr(self, "_called_from_command_line", False):
            sys.exit(code)
        raise CommandError(str(error), returncode=code) from error

    def _reported(self, error: Any) -> int | None:
        if isinstance(error, DatabaseError | InterfaceError):
            error = translate(error) or error
        if isinstance(error, DuctorError):
            screen.write_error(error)
            return screen.exit_code(error)
        # typer keeps its parser private; a usage error is what formats its own message and ends with 2.
        if getattr(error, "exit_code", None) == screen.EXIT_USAGE and hasattr(error, "format_message"):
            where = error.ctx.command_path if error.ctx else "manage.py ductor"
            # Without a message the help was asked for and has been shown.
            if message := error.format_message():
                screen.write_error_line(f"{message} See `{where} --help`.", code="usage")
            return screen.EXIT_USAGE
        return None


for name, group in {
    "tenants": tenant_commands,
    "audit": audit,
    "keys": keys,
    "members": members,
    "operators": operators,
    "tasks": tasks,
    "queues": queues,
}.items():
    # django-typer takes typer's own apps, though its types name only its subclass.
    Command.typer_app.add_typer(group.app, name=name)  # type: ignore[arg-type]
Command.typer_app.command("doctor")(doctor.doctor)
Command.typer_app.command("bench")(bench.bench)
Command.typer_app.command("init-db")(initdb.init_db)
