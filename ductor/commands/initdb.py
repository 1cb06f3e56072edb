"""`manage.py ductor init-db`"""

from typing import Annotated

import typer

from ductor.commands.screen import EXIT_ERROR, Json, say, show, write_error_line
from ductor.databases import DatabaseUnclear
from ductor.embedded import ServerFailed
from ductor.init_db import InitFailed, initialise


def init_db(
    new_passwords: Annotated[
        bool, typer.Option("--new-passwords", help="Give the login roles new passwords; other machines lose access.")
    ] = False,
    no_tables: Annotated[
        bool, typer.Option("--no-tables", help="Roles and an empty database only: a backup is to be restored into it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Prepare roles, database and schema with an owner's login (DATABASE_URL). It can be repeated."""
    try:
        initialise(progress=say, new_passwords=new_passwords, tables=not no_tables)
    except (InitFailed, DatabaseUnclear, ServerFailed) as error:
        write_error_line(str(error), code="failed")
        raise typer.Exit(EXIT_ERROR) from None
    show({"ready": True})
