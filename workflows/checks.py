"""System checks over every declared workflow: `manage.py check` names each mistake, with what to do about it.

E001 circle · E002 unknown step · E003 name used twice · E004 name breaks the rule · E005 changed shape without a new
version · E006 timeout, retry or max_failures · E008 no step or too many · E009 input type · E010 handler ·
E011 version · W007 queue not declared.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.conf import settings
from django.core import checks

from tenants.identity import SYSTEM_QUEUE
from workflows import registry
from workflows.definitions import Workflow
from workflows.graph import Mistake


@checks.register("ductor")
def check_workflows(app_configs: Sequence[Any] | None = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Check every workflow of this process."""
    workflows = registry.all()
    messages: list[checks.CheckMessage] = [
        _error(workflow, mistake) for workflow in workflows for mistake in workflow.mistakes()
    ]
    messages += [_error(workflow, mistake) for workflow, mistake in _doubles(workflows)]
    declared = {*settings.DUCTOR_QUEUES, SYSTEM_QUEUE}
    messages += [
        checks.Warning(
            f"{_label(workflow)}: its queue {workflow.queue!r} is not among DUCTOR_QUEUES.",
            hint="Add it to DUCTOR_QUEUES, or make it by `manage.py ductor queues create`.",
            id="ductor.W007",
        )
        for workflow in workflows
        if workflow.queue not in declared
    ]
    return messages


def _doubles(workflows: list[Workflow]) -> list[tuple[Workflow, Mistake]]:
    found = []
    for (name, version), group in groupby(workflows, key=lambda w: (str(w.name), str(w.version))):
        first, *others = group
        for other in others:
            where = f"{name} version {version} is declared in {first.module} and in {other.module}"
            if _shape(first) == _shape(other):
                found.append((other, Mistake("E003", f"{where}.", "Remove one, or give it a name of its own.")))
            else:
                hint = f"A changed shape needs a new version: write version={version} + 1 in the changed one."
                found.append((other, Mistake("E005", f"{where} with another shape.", hint)))
    return found


def _shape(workflow: Workflow) -> str | None:
    return None if workflow.mistakes() else workflow.checksum


def _error(workflow: Workflow, mistake: Mistake) -> checks.Error:
    return checks.Error(f"{_label(workflow)}: {mistake.text}", hint=mistake.hint or None, id=f"ductor.{mistake.code}")


def _label(workflow: Workflow) -> str:
    return f"Workflow {workflow.name!r} version {workflow.version!r} in {workflow.module}"
