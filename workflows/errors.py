"""Facts that stop an act on work (codes and SQLSTATEs: DESIGN section 9)."""

from tenants.errors import Conflict, Fault, Invalid, NotFound, Refused


class TaskNotFound(NotFound):
    """There is no such task."""

    sqlstate = "WF404"


class TurnNotFound(NotFound):
    """The tenant has no work in such a queue."""

    sqlstate = "WF405"


class QuotaExceeded(Refused):
    """The tenant's limit is reached."""

    code = "quota_exceeded"
    sqlstate = "WF429"


class Overloaded(Refused):
    """The platform is at its limit; try again shortly."""

    code = "overloaded"
    http_status = 503
    sqlstate = "WF503"


class KeyConflict(Conflict):
    """This key was used for a task with other content."""

    code = "key_conflict"
    sqlstate = "WF409"


class StaleClaim(Conflict):
    """The lease is lost: another owner has the task, or its time ran out. Nothing was written."""

    code = "lease_lost"
    sqlstate = "WF410"


class TaskFinished(Conflict):
    """The task has ended already; a terminal state is final."""

    code = "already_terminal"
    sqlstate = "WF411"


class IllegalMove(Conflict):
    """A task in this state can't be moved there."""

    code = "illegal_move"
    sqlstate = "WF412"


class DefinitionChanged(Conflict):
    """This version of the workflow is stored with another shape; a changed shape needs a new version."""

    code = "definition_changed"
    sqlstate = "WF413"


class TenantBusy(Conflict):
    """Tasks of the tenant are leased: freeze its claims and wait until what runs has ended, or is recovered."""

    code = "tenant_busy"
    sqlstate = "WF414"


class InputInvalid(Invalid):
    """The input does not fit."""

    code = "input_invalid"
    http_status = 422
    sqlstate = "WF422"


class UnknownWorkflow(Invalid):
    """There is no such workflow or version here."""

    code = "unknown_workflow"
    http_status = 422
    sqlstate = "WF423"


class BatchOutOfBounds(Invalid):
    """A batch has a size outside its bounds."""

    code = "batch_out_of_bounds"
    sqlstate = "WF400"


class FormatUnknown(Fault):
    """This is stored in a format of a newer Ductor; it is left as it is. Run the version that wrote it, or a newer."""

    sqlstate = "WF500"
