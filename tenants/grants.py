"""What each role may do with the tables and functions of this app. What is not listed is not granted."""

from tenants.db.roles import ENGINE, OPERATOR, WEB, WORKER

_EVERY = "select, insert, update, delete"

TABLES: dict[str, dict[str, str]] = {
    "tenants_tenant": {ENGINE: "select, insert", OPERATOR: "select"},
    "tenants_domain": {ENGINE: "select", OPERATOR: "select"},
    "tenants_policy": {ENGINE: "select, insert, update", WEB: "select", OPERATOR: "select"},
    "tenants_load": {ENGINE: _EVERY, WEB: "select", WORKER: "select", OPERATOR: "select"},
    "tenants_turn": {ENGINE: _EVERY, OPERATOR: "select"},
    "tenants_apikey": {ENGINE: "select", WEB: "select, insert, update", OPERATOR: "select, insert, update"},
    "tenants_act": {WEB: "select, insert", WORKER: "insert", OPERATOR: "select, insert"},
    "tenants_member": {ENGINE: "select", WEB: _EVERY, OPERATOR: _EVERY},
    "tenants_invitation": {ENGINE: "select", WEB: "select, insert, update", OPERATOR: "select, insert, update"},
    "tenants_queue": {ENGINE: "select", WEB: "select", WORKER: "select", OPERATOR: "select"},
    "tenants_listener": {ENGINE: "select", WORKER: _EVERY, OPERATOR: "select"},
    # Django's cache holds pickles, signed by the surface; nobody writes what another kind of process reads.
    "tenants_cache_web": {WEB: _EVERY},
    "tenants_cache_worker": {WORKER: _EVERY},
    "tenants_cache_operator": {OPERATOR: _EVERY},
    "django_migrations": {WEB: "select", WORKER: "select", OPERATOR: "select"},
    "django_content_type": {WEB: "select", WORKER: "select", OPERATOR: "select"},
}

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "ductor_now": (WEB, WORKER, OPERATOR),
    "tenants_raise": (WEB, WORKER, OPERATOR),
    "tenants_require_scope": (WEB, WORKER, OPERATOR),
    "tenants_refuse_change": (WEB, WORKER, OPERATOR),
    "tenants_keep_key": (WEB, OPERATOR),
    "tenants_provision": (OPERATOR,),
    "tenants_hold_limits": (),
    "tenants_set_policy": (OPERATOR,),
    "tenants_set_own_policy": (WEB,),
    "tenants_read_usage": (WEB, OPERATOR),
    "tenants_set_freeze": (OPERATOR,),
    "tenants_find_api_key": (WEB,),
    "tenants_check_domain": (WEB,),
    "tenants_find_membership": (WEB,),
    "tenants_list_memberships": (WEB,),
    "tenants_find_invitation": (WEB,),
    "tenants_turn_blocked": (),
    "tenants_queue_clock": (OPERATOR,),
    "tenants_move_work": (),
    "tenants_wake": (),
    # The owner's own: restoring a tenant is no act of a surface.
    "tenants_hold_still": (),
    "tenants_recount": (),
}

ENGINE_FUNCTIONS = frozenset(
    {
        "tenants_provision",
        "tenants_set_policy",
        "tenants_set_own_policy",
        "tenants_read_usage",
        "tenants_set_freeze",
        "tenants_find_api_key",
        "tenants_check_domain",
        "tenants_find_membership",
        "tenants_list_memberships",
        "tenants_find_invitation",
    },
)
