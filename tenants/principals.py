"""Who acts: the `principal` argument of every verb."""

import getpass
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["key", "person", "command", "code", "system"]

SCOPES = frozenset(
    {
        "tasks:read",
        "tasks:write",
        "signals:write",
        "worker",
        "policy:read",
        "policy:write",
        "budget:read",
        "audit:read",
        "keys:write",
    }
)


@dataclass(frozen=True, slots=True)
class Principal:
    """One actor: an API key, a person, a command's OS user, a handler's code, or the system itself.

    `behind` names the person behind a key, where one is known.
    """

    kind: Kind
    id: str
    name: str = ""
    scopes: frozenset[str] = frozenset()
    request_id: str = ""
    behind: str = ""

    @classmethod
    def command(cls) -> "Principal":
        """The OS user who runs a command."""
        user = getpass.getuser()
        return cls(kind="command", id=user, name=user, scopes=SCOPES)

    @classmethod
    def code(cls) -> "Principal":
        """A Django developer's own code that calls a verb."""
        return cls(kind="code", id="code", scopes=SCOPES)

    @classmethod
    def system(cls) -> "Principal":
        """Ductor's own machinery."""
        return cls(kind="system", id="system", scopes=SCOPES)

    def with_request(self, request_id: str) -> "Principal":
        """Return the same actor, acting in the request `request_id`."""
        return replace(self, request_id=request_id)

    def as_json(self) -> dict[str, str]:
        """Return what audit rows and a task's origin store."""
        return {"kind": self.kind, "id": self.id, "name": self.name, "behind": self.behind}
