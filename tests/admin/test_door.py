"""Who gets in at /admin/: an operator with a second factor, and nobody else."""

from tests.surfaces import operator_surface


def test_an_operator_signs_in_with_a_second_factor() -> None:
    visitor = operator_surface().operator()
    assert visitor.get("/accounts/2fa/").status == 200
