"""What a restore does with each tenant table; a table without a rule is neither exported nor restored, but refused.

Each app lists its own in `<app>/archive_rules.py`: `RULES` maps a table to its rule, in the order in which rows are put
in. Rows are taken out in the reverse order.
"""

import importlib
from dataclasses import dataclass
from enum import StrEnum

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from tenants.db.guard import adopted_tables, tenant_tables
from tenants.errors import RuleMissing

EVERY_COLUMN = ("*",)


class Rule(StrEnum):
    """What becomes of a table's rows."""

    REPLACE = "replace"
    ADD = "add missing"
    LIVE = "keep live"
    COUNT = "count anew"


@dataclass(frozen=True, slots=True)
class Restored:
    """One table's rule, and why it is so.

    `key` names the columns after `tenant_id` by which ADD finds a row of the file among the live ones, `agree` those
    in which the two must then be equal; `order` the column by which REPLACE puts rows in, where one row asks for
    another.
    """

    rule: Rule
    reason: str
    key: tuple[str, ...] = ()
    agree: tuple[str, ...] = ()
    order: str = ""


def declared() -> dict[str, Restored]:
    """Collect the rules of every app, in the order in which rows are put in.

    Raises:
        RuleMissing: a table whose rows belong to tenants has no rule.
    """
    found: dict[str, Restored] = {}
    for config in apps.get_app_configs():
        if config.module is not None and module_has_submodule(config.module, "archive_rules"):
            found |= importlib.import_module(f"{config.name}.archive_rules").RULES
    missing = sorted((tenant_tables() | adopted_tables()) - set(found))
    if missing:
        raise RuleMissing(
            f"No rule says what a restore does with the rows of {', '.join(missing)}: list each in RULES of its app's "
            "`archive_rules`.",
            tables=missing,
        )
    return found
