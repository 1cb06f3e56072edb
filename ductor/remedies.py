"""What to do about each problem, by code: shown on the page that a problem's `type` leads to."""

REMEDIES = {
    "already_member": "Nothing is left to do; to change what the person may do, change the member's role.",
    "already_terminal": "Read the task: its state is final. To run it again, start a new task under another key.",
    "archive_invalid": "Use the file as `ductor tenants export` wrote it, of a version that this one can read.",
    "batch_out_of_bounds": "Send 1 to 1,000 items in one batch, and more of them in several.",
    "conflict": "Read the present state and decide anew.",
    "definition_changed": (
        "Give the changed workflow a new version number in its code, and install it on every process; tasks of the old"
        " version go on by the old shape."
    ),
    "fault": "Try again later. When you report it, name the request id: the server's log says the rest.",
    "forbidden": "Use a key with the scope that the answer names, or ask a member who may to make one.",
    "identity_invalid": "Choose a name by the rule that the answer quotes.",
    "illegal_move": "Read the task: in its present state this is not possible.",
    "input_invalid": "Correct the places that `errors` names; GET /api/v1/workflows/<name> shows the input's schema.",
    "invalid_request": "Correct the places that `errors` names. Nothing was written.",
    "key_conflict": (
        "For the same piece of work, send exactly what was sent first; for another one, choose another key."
    ),
    "last_owner": "Make another member an owner, then repeat this.",
    "lease_lost": "Stop working on the task: somebody else has it, or will have it.",
    "limit_invalid": "Choose a number within the bounds that the answer names.",
    "method_not_allowed": "Use one of the methods that the header Allow names.",
    "not_acceptable": "Accept application/json.",
    "not_entitled": "Ask the operator of this platform for a plan that includes it.",
    "not_found": (
        "Check the id, and that the key is the right tenant's: what another tenant has, what never was and what is gone"
        " look the same."
    ),
    "overloaded": "Wait as long as Retry-After says, then send the same request again.",
    "policy_missing": "Ask the operator of this platform to set the tenant's policy.",
    "queue_taken": "Use the queue that is there, or choose another name.",
    "queue_unknown": "Name a queue that exists, or leave `queue` out to take the workflow's own.",
    "quota_exceeded": (
        "Wait until tasks finish, cancel some, lift the tenant's own limit if that is the lower one, or ask the"
        " operator for a higher one. GET /api/v1/usage shows where you stand."
    ),
    "rate_limited": "Wait as long as Retry-After says. The headers RateLimit and RateLimit-Policy tell of it before.",
    "slug_taken": "Choose another slug.",
    "tenant_busy": "Wait until its running tasks have ended, then repeat this.",
    "tenant_frozen": "Wait, or ask the operator of this platform why the tenant is frozen.",
    "tenant_not_frozen": "Freeze the tenant's admission and claims first: `ductor tenants freeze`.",
    "too_large": "Send less at once: smaller inputs, or fewer items. Keep large data elsewhere, and send its address.",
    "unauthenticated": "Send `Authorization: Bearer <key>` with a key that is neither revoked nor expired.",
    "unavailable": (
        "Wait as long as Retry-After says, then send the same request with the same key again: a task that was started"
        " after all is not started twice."
    ),
    "unknown_workflow": "GET /api/v1/workflows lists what can be started; a new one has to be installed first.",
    "unsupported_media_type": "Send JSON, with the header `Content-Type: application/json`.",
    "version_mismatch": "Read it again, decide again, and send the ETag that you then have as `If-Match`.",
    "version_required": "Read it first, and send the ETag of that answer as `If-Match`.",
}
