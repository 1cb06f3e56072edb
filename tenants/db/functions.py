"""SQL functions live in files, one a version: `<app>/sql/<name>_v01.sql` is `<app>_<name>` in the database."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps

_FILE = re.compile(r"(?P<name>[a-z_]+)_v(?P<version>\d\d)\.sql")
_BODY = re.compile(r"\$(?P<tag>\w*)\$(?P<body>.*)\$(?P=tag)\$", re.DOTALL)

# ductor_now() has the platform's name, not its app's: every app reads the one clock.
_SPECIAL = {("tenants", "now"): "ductor_now"}


@dataclass(frozen=True)
class FunctionFile:
    """One version of one SQL function: where its text stands and what it is called in the database."""

    app: str
    name: str
    version: int
    path: Path

    @property
    def function(self) -> str:
        """The function's name in the database."""
        return _SPECIAL.get((self.app, self.name), f"{self.app}_{self.name}")

    @property
    def text(self) -> str:
        """The file's text."""
        return self.path.read_text()

    @property
    def body(self) -> str:
        """The text between the dollar quotes: what PostgreSQL keeps as `pg_proc.prosrc`."""
        found = _BODY.search(self.text)
        if found is None:
            raise ValueError(f"{self.path.name} has no dollar-quoted body")
        return found["body"]


def function_files(app: str | None = None) -> list[FunctionFile]:
    """Return every function file of the installed apps, or of one app, oldest version first."""
    labels = [app] if app else [config.label for config in apps.get_app_configs()]
    found = []
    for label in labels:
        folder = Path(apps.get_app_config(label).path) / "sql"
        for path in sorted(folder.glob("*.sql")):
            match = _FILE.fullmatch(path.name)
            if match is None:
                raise ValueError(f"{path.name} is not named <function>_v<NN>.sql")
            found.append(FunctionFile(label, match["name"], int(match["version"]), path))
    return found


def newest_files() -> dict[str, FunctionFile]:
    """Return the newest file of each function, by its name in the database."""
    return {file.function: file for file in function_files()}


def install_sql(app: str, name: str, version: int) -> str:
    """Return the text of one function file.

    Raises:
        LookupError: there is no such file.
    """
    for file in function_files(app):
        if (file.name, file.version) == (name, version):
            return file.text
    raise LookupError(f"{app}/sql/{name}_v{version:02d}.sql does not exist")


def drop_sql(app: str, name: str) -> str:
    """Return the statement that drops a function."""
    return f"drop function {_SPECIAL.get((app, name), f'{app}_{name}')} cascade"


def reinstall_changed(cursor: Any) -> list[str]:
    """Install again each migrated function whose live text differs from its newest file; returns their names."""
    cursor.execute(
        "select proname, prosrc from pg_proc where pronamespace = 'public'::regnamespace and prokind in ('f', 'p')"
    )
    live = dict(cursor.fetchall())
    changed = [file for name, file in newest_files().items() if name in live and live[name] != file.body]
    for file in changed:
        if "returns trigger" not in file.text.lower():
            # A changed signature would make a second function beside the first.
            cursor.execute(f"drop function {file.function}")
        cursor.execute(file.text)
    return [file.function for file in changed]
