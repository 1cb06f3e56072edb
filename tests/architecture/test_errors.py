"""The tree of errors: codes, statuses and SQLSTATEs are fixed (DESIGN section 9), and a docstring is its message."""

import pickle
import re

import pytest

from ductor import broker  # noqa: F401  (declares an error)
from tenants.api import errors  # noqa: F401  (declares errors)
from tenants.db.functions import newest_files
from tenants.errors import Conflict, DuctorError, Fault, Invalid, NotFound, Refused, by_sqlstate, leaves

FAMILIES = {NotFound: {404}, Refused: {429, 503}, Conflict: {409}, Invalid: {400, 413, 422}, Fault: {500}}
# Authentication and plans stand beside the families.
ALONE = {"VersionMismatch": 412, "VersionRequired": 428, "Unauthenticated": 401, "Forbidden": 403, "NotEntitled": 403}

FIXED = {
    "TaskNotFound": ("not_found", 404, "WF404"),
    "TenantNotFound": ("not_found", 404, "TN404"),
    "QuotaExceeded": ("quota_exceeded", 429, "WF429"),
    "RateLimited": ("rate_limited", 429, "TN429"),
    "Overloaded": ("overloaded", 503, "WF503"),
    "PolicyMissing": ("policy_missing", 409, "TN409"),
    "TenantFrozen": ("tenant_frozen", 409, "TN423"),
    "KeyConflict": ("key_conflict", 409, "WF409"),
    "StaleClaim": ("lease_lost", 409, "WF410"),
    "TaskFinished": ("already_terminal", 409, "WF411"),
    "IllegalMove": ("illegal_move", 409, "WF412"),
    "NotEntitled": ("not_entitled", 403, "TN403"),
    "InputInvalid": ("input_invalid", 422, "WF422"),
    "UnknownWorkflow": ("unknown_workflow", 422, "WF423"),
    "BatchOutOfBounds": ("batch_out_of_bounds", 400, "WF400"),
    "ScopeMissing": ("fault", 500, "TN500"),
    "ScopeConflict": ("fault", 500, "TN501"),
}


def classes() -> list[type[DuctorError]]:
    """Return every error class of the product, families included."""
    found, todo = [], [DuctorError]
    while todo:
        error = todo.pop()
        found.append(error)
        todo += error.__subclasses__()
    return [error for error in found if not error.__module__.startswith("tests.")]


def leaf_classes() -> list[type[DuctorError]]:
    return [error for error in classes() if error is not DuctorError and error not in FAMILIES]


@pytest.mark.parametrize("name", FIXED)
def test_fixed_names_and_numbers(name: str) -> None:
    (error,) = [error for error in classes() if error.__name__ == name]
    assert (error.code, error.http_status, error.sqlstate) == FIXED[name]
    assert by_sqlstate(error.sqlstate) is error


def test_a_leaf_has_the_status_of_its_family() -> None:
    for error in leaf_classes():
        family = [statuses for base, statuses in FAMILIES.items() if issubclass(error, base)]
        allowed = family[0] if family else {ALONE[error.__name__]}
        assert error.http_status in allowed, error


def test_a_code_means_one_status() -> None:
    statuses: dict[str, set[int]] = {}
    for error in leaf_classes():
        statuses.setdefault(error.code, set()).add(error.http_status)
    assert {code: found for code, found in statuses.items() if len(found) > 1} == {}


def test_a_docstring_is_the_default_message() -> None:
    for error in classes():
        said = error().message
        assert said == " ".join((error.__doc__ or "").split())
        assert said.endswith("."), error
        assert error("other").message == "other"


def test_sqlstates_keep_the_form_of_their_app() -> None:
    prefixes = {"tenants": "TN", "workflows": "WF"}
    for sqlstate, error in leaves().items():
        assert re.fullmatch(prefixes[error.__module__.split(".")[0]] + r"\d{3}", sqlstate), error


def test_a_sqlstate_is_given_once() -> None:
    with pytest.raises(TypeError, match="WF404 belongs to TaskNotFound already"):
        type("Second", (NotFound,), {"sqlstate": "WF404"})


def test_sql_raises_only_what_has_a_class() -> None:
    # 23503 is a foreign key's own, 42501 a privilege's: they stand for no refusal of ours.
    known = {*leaves(), "23503", "42501"}
    for file in newest_files().values():
        raised = re.findall(r"(?:tenants_raise\(|errcode = )'(\w{5})'", file.text)
        assert set(raised) <= known, file.path.name


def test_an_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(by_sqlstate("WF429")("full", retry_after=5.0, used=2)))  # type: ignore[misc]
    assert (type(error).__name__, error.message, error.retry_after, error.fields) == (
        "QuotaExceeded",
        "full",
        5.0,
        {"used": 2},
    )
