"""What a restore of one tenant does with the tables of this app (see `tenants.archives.rules`)."""

from tenants.archives.rules import EVERY_COLUMN, Restored, Rule

RULES = {
    "tenants_policy": Restored(Rule.LIVE, "what operators allow today is not what they allowed at the backup"),
    "tenants_load": Restored(Rule.COUNT, "limits and freezes are today's; counters follow from the tasks put in"),
    "tenants_turn": Restored(Rule.COUNT, "as the load row; no turn goes back in the fair order"),
    "tenants_apikey": Restored(Rule.LIVE, "a key that was revoked since must not open anything again"),
    "tenants_member": Restored(Rule.LIVE, "who was removed since must not come back, and no role may rise again"),
    "tenants_invitation": Restored(Rule.LIVE, "a link that was used or taken back since must not open again"),
    "tenants_act": Restored(Rule.ADD, "the audit is never shortened or changed", key=("id",), agree=EVERY_COLUMN),
}
