"""`manage.py ductor operators …`"""

import secrets
import sys
from typing import Annotated

import typer

from ductor.commands.screen import Json, say, show
from tenants.people import operators

app = typer.Typer(help="People who may sign in to the operator surface.", no_args_is_help=True)

Email = Annotated[str, typer.Argument(help="The operator's address.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]


@app.command()
def create(
    email: Email,
    name: Annotated[str, typer.Option(help="How the operator is shown.")] = "",
    password_stdin: FromStdin = False,
    as_json: Json = False,
) -> None:
    """Make an operator. Without --password-stdin a password is made and shown this once.

    The first sign-in asks for a second factor to be set up; nothing else opens before that.
    """
    password = _password(password_stdin)
    person = operators.create_operator(email=email, name=name, password=password)
    show({"id": person.id, "email": person.email} | ({} if password_stdin else {"password": password}))
    say("Keep the password now: it can't be shown again." if not password_stdin else "The operator may sign in.")


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the operators."""
    people = [
        {"email": person.email, "name": person.name, "active": person.active, "second_factor": person.second_factor}
        for person in operators.list_operators()
    ]
    show({"operators": people}, rows="operators", columns=("email", "name", "active", "second_factor"))


@app.command()
def remove(email: Email, as_json: Json = False) -> None:
    """Shut an operator out at the next request; the account is kept, so that the audit still names somebody."""
    operators.remove_operator(email=email)
    show({"email": email, "active": False})


@app.command()
def reset(email: Email, password_stdin: FromStdin = False, as_json: Json = False) -> None:
    """Give an operator a new password and take the second factors away: for one who lost them."""
    password = _password(password_stdin)
    operators.reset_operator(email=email, password=password)
    show({"email": email} | ({} if password_stdin else {"password": password}))


def _password(from_stdin: bool) -> str:
    return sys.stdin.readline().rstrip("\n") if from_stdin else secrets.token_urlsafe(18)
