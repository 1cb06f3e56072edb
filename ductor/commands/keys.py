"""`manage.py ductor keys …`"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from django.utils.dateparse import parse_datetime

from ductor.commands.screen import Json, Reason, Tenant, say, show
from tenants.identity import parse_id
from tenants.keys import create_api_key, revoke_api_key
from tenants.permissions import SCOPES
from tenants.principals import Principal
from tenants.queries import get_tenant, list_keys
from workflows.durations import seconds_of

app = typer.Typer(help="API keys of a tenant.", no_args_is_help=True)

_COLUMNS = ("id", "prefix", "name", "scopes", "created_at", "expires_at", "revoked_at")


@app.command()
def create(
    tenant: Tenant,
    scope: Annotated[list[str], typer.Option(help=f"May be given often. One of {', '.join(sorted(SCOPES))}.")],
    name: Annotated[str, typer.Option(help="What the key is for.")] = "key",
    expires: Annotated[str, typer.Option(help="A span such as 90d, or a time such as 2030-01-31T00:00:00Z.")] = "",
    as_json: Json = False,
) -> None:
    """Make a key. Its text is shown this once; only its hash is kept."""
    unknown = sorted(set(scope) - SCOPES)
    if unknown:
        raise typer.BadParameter(f"Unknown scope {', '.join(unknown)}; there are {', '.join(sorted(SCOPES))}.")
    owner = get_tenant(slug=tenant)
    view, plaintext = create_api_key(
        tenant_id=owner.id,
        name=name,
        scopes=frozenset(scope),
        expires_at=_expiry(expires) if expires else None,
        principal=Principal.command(),
    )
    show(asdict(view) | {"tenant": tenant, "key": plaintext})
    say("Keep the key now: it can't be shown again.")


@app.command("list")
def list_all(tenant: Tenant, as_json: Json = False) -> None:
    """List a tenant's keys; none shows its text."""
    keys = [asdict(key) for key in list_keys(tenant_id=get_tenant(slug=tenant).id)]
    show({"keys": keys}, rows="keys", columns=_COLUMNS)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(help="The key's id, from `keys list`.")],
    tenant: Tenant,
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Revoke a key: from now on every process refuses it."""
    owner = get_tenant(slug=tenant)
    key = revoke_api_key(tenant_id=owner.id, key_id=parse_id(key_id), principal=Principal.command(), reason=reason)
    show(asdict(key) | {"tenant": tenant})


def _expiry(text: str) -> datetime:
    try:
        at = parse_datetime(text)
        if at is None:
            at = datetime.now(UTC) + timedelta(seconds=seconds_of(text))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None
    if at.tzinfo is None:
        raise typer.BadParameter("A time needs its offset, such as Z.", param_hint="--expires")
    if at <= datetime.now(UTC):
        raise typer.BadParameter("This time has passed: the key would open nothing.", param_hint="--expires")
    return at
