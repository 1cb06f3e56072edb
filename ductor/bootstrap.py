"""What manage.py does before Django: the environment, the process's role, and who carries the command out.

Standard library only until the environment's own Python runs.
"""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ductor.installing import Environment, InstallFailed

ROOT = Path(__file__).resolve().parent.parent

# The owner migrates and provisions; a cluster is a worker; every other command looks at all tenants.
OWNER_COMMANDS = frozenset(
    {"migrate", "makemigrations", "showmigrations", "sqlmigrate", "createcachetable", "flush", "dbshell"}
)
OWNER_SUBCOMMANDS = frozenset({"init-db", "tenants", "queues"})

# These say something or start their own server; the rest may ask the database.
WITHOUT_DATABASE = frozenset(
    {"help", "version", "check", "up", "test", "diffsettings", "makemessages", "compilemessages", "startapp"}
)


def role_for(arguments: Sequence[str]) -> str:
    """Return the database role (owner, worker or operator) in which a command runs."""
    words = [argument for argument in arguments if not argument.startswith("-")]
    command = words[0] if words else ""
    if command == "qcluster":
        return "worker"
    if command in OWNER_COMMANDS or (command == "ductor" and words[1:2] and words[1] in OWNER_SUBCOMMANDS):
        return "owner"
    return "operator"


def needs_database(arguments: Sequence[str]) -> bool:
    """Say whether a command may use the database, so that the embedded server has to run."""
    if not arguments or arguments[0].startswith("-") or {"--help", "-h", "--version"} & set(arguments):
        return False
    return arguments[0] not in WITHOUT_DATABASE and list(arguments[:2]) not in (["ductor"], ["ductor", "init-db"])


def main(argv: list[str]) -> int:
    """Run a manage.py command line; return its exit code.

    On a machine where nothing is installed this makes the environment and starts the same command again inside it.
    """
    arguments = argv[1:]
    environment = Environment(ROOT)
    try:
        installed = environment.prepare(dev=arguments[:1] == ["test"])
    except InstallFailed as failure:
        return _fail(str(failure))
    except KeyboardInterrupt:
        return _fail("interrupted; run the same command again to go on", code=130)
    if installed or not environment.active:
        return _run_again(environment, argv)
    # The environment's commands (granian, ruff) must be found by what this process starts.
    os.environ["PATH"] = f"{environment.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ.setdefault("DUCTOR_ROLE", role_for(arguments))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ductor.settings")
    if arguments[:1] == ["test"]:
        from ductor import testrun

        return testrun.main(arguments[1:])
    if missing := missing_app(os.environ.get("DUCTOR_APPS", "")):
        return _fail(f"DUCTOR_APPS names {missing!r}, which Python can't find: put its folder's parent into PYTHONPATH")
    from ductor.addresses import base_url
    from ductor.cluster_settings import SettingInvalid, check_numbers

    try:
        # Asked before the settings ask, so that what can't be used is a line and not a traceback.
        check_numbers()
        base_url()
    except SettingInvalid as failure:
        return _fail(str(failure))
    if arguments[:1] == ["up"]:
        from ductor.up import session

        # Before Django: its settings read the logins that `up` may only be about to make.
        return session.main(arguments[1:])
    return _run_django(argv)


def missing_app(names: str) -> str:
    """Return the first of the comma-separated apps whose package can't be found, or ''."""
    stripped = (name.strip() for name in names.split(","))
    return next((name for name in stripped if name and _is_missing(name.partition(".")[0])), "")


def _is_missing(package: str) -> bool:
    try:
        return find_spec(package) is None
    except (ImportError, ValueError):
        return True


def _run_again(environment: Environment, argv: list[str]) -> int:
    python = str(environment.python)
    try:
        os.execv(python, [python, str(ROOT / "manage.py"), *argv[1:]])  # noqa: S606 (arguments are passed as they came)
    except OSError as error:
        return _fail(f"can't start {python}: {error.strerror}; remove {environment.folder} and run again")


def _run_django(argv: list[str]) -> int:
    from ductor import databases
    from ductor.database_roles import InitFailed
    from ductor.embedded import ServerFailed

    try:
        # Before the settings ask, so that what can't be used is a line and not a traceback.
        databases.connection_settings(os.environ["DUCTOR_ROLE"])
        if needs_database(argv[1:]):
            databases.refuse_other_login(os.environ["DUCTOR_ROLE"])
            databases.ensure_server()
    except (ServerFailed, InitFailed, databases.DatabaseUnclear) as failure:
        return _fail(str(failure))
    from django.core.management import execute_from_command_line

    execute_from_command_line(argv)
    return 0


def _fail(message: str, code: int = 1) -> int:
    print(f"ductor: {message}", file=sys.stderr)
    return code
