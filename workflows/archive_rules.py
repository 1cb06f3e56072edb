"""What a restore of one tenant does with the tables of this app (see `tenants.archives.rules`)."""

from tenants.archives.rules import Restored, Rule

RULES = {
    "workflows_definition": Restored(
        Rule.ADD,
        "a version never changes its shape, and one that was started since stays bound to its own",
        key=("name", "version"),
        agree=("checksum",),
    ),
    "workflows_partition": Restored(
        Rule.ADD,
        "a lane's place in the fair order is today's; only lanes that are missing come back",
        key=("queue", "key"),
    ),
    "workflows_task": Restored(Rule.REPLACE, "the work is what is restored", order="nesting_depth"),
    "workflows_taskkey": Restored(Rule.REPLACE, "a key answers with its task, so both are of one moment"),
    "workflows_step": Restored(Rule.REPLACE, "a step is recorded if and only if its task has come that far"),
    "workflows_admission": Restored(Rule.LIVE, "its rows live inside one transaction only"),
}
