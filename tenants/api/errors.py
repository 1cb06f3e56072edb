"""Refusals that only HTTP knows."""

from collections.abc import Sequence
from typing import Any

from tenants.errors import DuctorError, Invalid


class RequestInvalid(Invalid):
    """The request is not well formed; `errors` says what and where."""

    code = "invalid_request"

    @classmethod
    def at(cls, pointer: str, code: str, detail: str) -> "RequestInvalid":
        """Refuse one place of the JSON body, named by its JSON pointer."""
        return cls(errors=[{"pointer": pointer, "code": code, "detail": detail}])

    @classmethod
    def parameter(cls, name: str, code: str, detail: str) -> "RequestInvalid":
        """Refuse one query parameter or header."""
        return cls(errors=[{"parameter": name, "code": code, "detail": detail}])

    @classmethod
    def many(cls, errors: Sequence[dict[str, Any]]) -> "RequestInvalid":
        """Refuse with a list of `{pointer | parameter, code, detail}`."""
        return cls(errors=list(errors))


class BodyTooLarge(Invalid):
    """The request is larger than 1 MiB."""

    code = "too_large"
    http_status = 413


class VersionRequired(DuctorError):
    """Say by `If-Match` which version this change was decided on: the ETag of the answer that showed it."""

    code = "version_required"
    http_status = 428
