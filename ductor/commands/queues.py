"""`manage.py ductor queues …`"""

from dataclasses import asdict

import typer

from ductor.commands.screen import Json, show
from tenants.principals import Principal
from tenants.queues import create_queue, list_queues

app = typer.Typer(help="The queues of the platform.", no_args_is_help=True)


@app.command()
def create(name: str, as_json: Json = False) -> None:
    """Make a queue with its clock; workers take from it when `DUCTOR_QUEUES` names it."""
    show(asdict(create_queue(name=name, principal=Principal.command())))


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the queues."""
    show({"queues": [asdict(queue) for queue in list_queues()]}, rows="queues", columns=("name", "created_at"))
