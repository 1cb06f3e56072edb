"""`manage.py ductor audit …`"""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

import typer
from django.utils.dateparse import parse_datetime

from ductor.commands.screen import Json, Tenant, say, show
from tenants.acts import list_acts
from tenants.identity import parse_id
from tenants.queries import MAX_PAGE, get_tenant
from workflows.durations import seconds_of

app = typer.Typer(help="Acts on what belongs to a tenant, or to the platform: tenant `system`.", no_args_is_help=True)

_COLUMNS = ("at", "act", "target_kind", "target_id", "who", "reason")
_WHEN = "A time such as 2030-01-31T00:00:00Z, or a span before now such as 24h."


@app.command("list")
def list_all(
    tenant: Tenant,
    act: Annotated[str | None, typer.Option(help="Only this kind of act, such as key.create.")] = None,
    target: Annotated[str | None, typer.Option(help="Only acts on the thing with this id.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only acts on this kind of thing, such as key.")] = None,
    since: Annotated[str, typer.Option(help=f"From this moment on. {_WHEN}")] = "",
    until: Annotated[str, typer.Option(help=f"Before this moment. {_WHEN}")] = "",
    before: Annotated[str, typer.Option(help="The id of the last act of the page before.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=MAX_PAGE)] = 50,
    as_json: Json = False,
) -> None:
    """List acts, newest first: who did what to which thing, when and why, and how it stood before and after."""
    found = list_acts(
        tenant_id=get_tenant(slug=tenant).id,
        act=act,
        target_kind=kind,
        target_id=target,
        since=_moment(since, "--since"),
        until=_moment(until, "--until"),
        before=_id(before),
        limit=limit,
    )
    acts = [asdict(one) | {"who": _who(one.principal)} for one in found]
    more = str(found[-1].id) if len(found) == limit else None
    show({"acts": acts, "next_before": more}, rows="acts", columns=_COLUMNS)
    if more:
        say(f"There may be more: --before {more}")


def _who(principal: dict[str, str]) -> str:
    name = principal.get("name") or principal["id"]
    behind = principal.get("behind", "")
    return f"{principal['kind']} {name}" + (f" ({behind})" if behind and behind != name else "")


def _moment(text: str, option: str) -> datetime | None:
    if not text:
        return None
    try:
        at = parse_datetime(text)
        if at is None:
            return datetime.now(UTC) - timedelta(seconds=seconds_of(text))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if at.tzinfo is None:
        raise typer.BadParameter("A time needs its offset, such as Z.", param_hint=option)
    return at


def _id(text: str) -> UUID | None:
    return parse_id(text) if text else None
