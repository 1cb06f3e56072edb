"""Who acts: the `principal` argument of every verb."""

import getpass
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from tenants.permissions import SCOPES, Permission, of_role, of_scopes

Kind = Literal["key", "person", "operator", "command", "code", "system"]


@dataclass(frozen=True, slots=True)
class Principal:
    """One actor: an API key, a person, an operator, a command's OS user, a handler's code, or the system itself.

    A key acts by its scopes, a person by its role in the tenant; the others are not asked.
    `behind` names the person behind a key, where one is known.
    """

    kind: Kind
    id: str
    name: str = ""
    scopes: frozenset[str] = frozenset()
    request_id: str = ""
    behind: str = ""
    role: str = ""

    @classmethod
    def operator(cls, person_id: UUID, email: str, request_id: str) -> "Principal":
        """Somebody signed in to the operator surface: of the platform, member of no tenant."""
        return cls(kind="operator", id=str(person_id), name=email, scopes=SCOPES, request_id=request_id)

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

    @property
    def permissions(self) -> frozenset[Permission]:
        """What this actor may do in its tenant."""
        match self.kind:
            case "person":
                return of_role(self.role)
            case "key":
                return of_scopes(self.scopes)
            case _:
                return frozenset(Permission)

    def may(self, permission: Permission) -> bool:
        """Say whether this actor has a permission."""
        return permission in self.permissions

    def with_request(self, request_id: str) -> "Principal":
        """Return the same actor, acting in the request `request_id`."""
        return replace(self, request_id=request_id)

    def as_json(self) -> dict[str, str]:
        """Return what audit rows and a task's origin store."""
        return {"kind": self.kind, "id": self.id, "name": self.name, "behind": self.behind}
