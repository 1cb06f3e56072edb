"""`manage.py ductor tenants …`"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer
from django.db import transaction

from ductor.commands.screen import EXIT_ERROR, Json, Reason, say, show, write_error_line
from ductor.tenant_archives import export_tenant, restore_tenant
from tenants.models import CUSTOMER_CLASSES
from tenants.policy import DEFAULT_MAX_LEASES, DEFAULT_MAX_OUTSTANDING, frozen_names, set_freeze, set_tenant_policy
from tenants.principals import Principal
from tenants.provisioning import create_tenant
from tenants.queries import get_policy, get_tenant, list_tenants
from workflows.faults import clear_fault

app = typer.Typer(help="Customers and what they may use.", no_args_is_help=True)

MaxOutstanding = Annotated[int | None, typer.Option(min=1, help="Tasks that may be unfinished at once.")]
MaxLeases = Annotated[int | None, typer.Option(min=1, help="Tasks that may run at once.")]
Weight = Annotated[int | None, typer.Option(min=1, help="Share beside other tenants.")]


@app.command()
def create(
    slug: Annotated[str, typer.Argument(help="a-z, 0-9 and '-', beginning with a letter; never used again.")],
    max_outstanding: MaxOutstanding = None,
    max_leases: MaxLeases = None,
    policy: Annotated[str, typer.Option(help="`default` sets 1,000 outstanding tasks and 20 leases.")] = "",
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    weight: Weight = None,
    service_class: Annotated[str, typer.Option(help=f"One of {', '.join(CUSTOMER_CLASSES)}.")] = "standard",
    as_json: Json = False,
) -> None:
    """Make a tenant with a policy: both limits, or `--policy default`."""
    if policy not in ("", "default"):
        raise typer.BadParameter("The only named policy is `default`.", param_hint="--policy")
    if policy == "default":
        max_outstanding = DEFAULT_MAX_OUTSTANDING if max_outstanding is None else max_outstanding
        max_leases = DEFAULT_MAX_LEASES if max_leases is None else max_leases
    if max_outstanding is None or max_leases is None:
        raise typer.BadParameter("Name --max-outstanding and --max-leases, or --policy default: there is no unlimited.")
    principal = Principal.command()
    with transaction.atomic():
        tenant = create_tenant(slug=slug, name=name, service_class=service_class, principal=principal)
        set_tenant_policy(
            tenant_id=tenant.id,
            max_outstanding=max_outstanding,
            max_leases=max_leases,
            weight=1 if weight is None else weight,
            principal=principal,
            reason="first policy",
        )
    show(asdict(tenant) | {"policy": _policy(tenant.id)})


@app.command("list")
def list_all(
    after: Annotated[str, typer.Option(help="Go on after this slug.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 100,
    as_json: Json = False,
) -> None:
    """List tenants by slug."""
    tenants = [asdict(tenant) for tenant in list_tenants(after=after, limit=limit)]
    show({"tenants": tenants}, rows="tenants", columns=("slug", "id", "name", "status", "service_class", "created_at"))


@app.command()
def policy(
    slug: str,
    max_outstanding: MaxOutstanding = None,
    max_leases: MaxLeases = None,
    weight: Weight = None,
    guaranteed_leases: Annotated[int | None, typer.Option(min=0, help="Leases kept free for it.")] = None,
    reason: Reason = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be set; set nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Show a tenant's policy and what it uses, or set what is named (with --reason)."""
    tenant = get_tenant(slug=slug)
    now = _policy(tenant.id)
    asked = {
        "max_outstanding": max_outstanding,
        "max_leases": max_leases,
        "weight": weight,
        "guaranteed_leases": guaranteed_leases,
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    if not wanted:
        show({"slug": slug, **now})
        return
    new = {name: now[name] for name in asked} | wanted
    if dry_run:
        show({"slug": slug, "dry_run": True, "now": {name: now[name] for name in asked}, "then": new})
        return
    if not reason:
        raise typer.BadParameter("A change needs --reason: it is kept in the audit.")
    set_tenant_policy(tenant_id=tenant.id, **new, principal=Principal.command(), reason=reason)
    say(f"The policy of {slug} is set.")
    show({"slug": slug, **_policy(tenant.id)})


@app.command()
def freeze(slug: str, reason: Reason, as_json: Json = False) -> None:
    """Stop a tenant: nothing is admitted and nothing is claimed until `unfreeze`."""
    _set_freeze(slug, freeze={"admission", "claims"}, reason=reason)


@app.command()
def unfreeze(slug: str, reason: Reason, as_json: Json = False) -> None:
    """Let a frozen tenant go on."""
    _set_freeze(slug, freeze=set(), reason=reason)


@app.command("clear-fault")
def clear_fault_of(
    slug: str, reason: Reason, queue: Annotated[str, typer.Option(help="The queue.")] = "default", as_json: Json = False
) -> None:
    """Let a tenant run again in a queue where `doctor` shows a fault, after its cause is mended."""
    tenant = get_tenant(slug=slug)
    clear_fault(tenant_id=tenant.id, queue=queue, principal=Principal.command(), reason=reason)
    show({"slug": slug, "queue": queue, "fault": False})


@app.command()
def export(
    slug: str,
    to: Annotated[Path, typer.Option("--to", help="A new file; one that is there is left as it is.", dir_okay=False)],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Write all rows of a tenant, of one moment, to a file that only this user may read."""
    tenant = get_tenant(slug=slug)
    try:
        made = export_tenant(tenant=tenant, target=to, principal=Principal.command(), reason=reason)
    except FileExistsError:
        raise typer.BadParameter(f"There is a file {to} already.", param_hint="--to") from None
    except OSError as error:
        write_error_line(f"{to} can't be written: {error.strerror}", code="failed")
        raise typer.Exit(EXIT_ERROR) from None
    rows = {table: entry.rows for table, entry in made.tables.items()}
    show({"slug": slug, "file": str(to), "made_at": made.made_at, "sha256": made.sha256, "rows": rows})


@app.command()
def restore(
    slug: str,
    source: Annotated[Path, typer.Option("--from", help="A file of `export`.", exists=True, dir_okay=False)],
    reason: Reason = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Put a frozen tenant's work back as a file has it; keys, members, limits and freezes stay as they are."""
    if not (reason or dry_run):
        raise typer.BadParameter("A restore needs --reason: it is kept in the audit.")
    tenant = get_tenant(slug=slug)
    try:
        done = restore_tenant(
            tenant=tenant, source=source, principal=Principal.command(), reason=reason, dry_run=dry_run
        )
    except OSError as error:
        write_error_line(f"{source} can't be read: {error.strerror}", code="failed")
        raise typer.Exit(EXIT_ERROR) from None
    for name in ("tasks", "in_the_way"):
        say(f"{name.replace('_', ' ')}: {done.get(name, '-')}")
    tables = [{"table": table, **found} for table, found in done["tables"].items()]
    columns = ("table", "rule", "live", "in_file", "taken_out", "put_in")
    show({"slug": slug, "dry_run": dry_run, **done, "tables": tables}, rows="tables", columns=columns)


def _set_freeze(slug: str, *, freeze: set[str], reason: str) -> None:
    tenant = get_tenant(slug=slug)
    set_freeze(tenant_id=tenant.id, freeze=freeze, principal=Principal.command(), reason=reason)
    show({"slug": slug, **_policy(tenant.id)})


def _policy(tenant_id: UUID) -> dict[str, Any]:
    policy = asdict(get_policy(tenant_id=tenant_id))
    return policy | {"frozen": frozen_names(policy["frozen"])}
