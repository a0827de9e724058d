"""How a text wants a number written, and the number so written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.workers.calculator import Rounding, requested_rounding


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Solve it to a maximum of 10 significant digits.", Rounding(figures=10)),
        ("Give three significant figures.", Rounding(figures=3)),
        ("to 4 sig. figs", Rounding(figures=4)),
        ("Round to 2 decimal places.", Rounding(places=2)),
        ("with two decimals, no: with 1 decimal digit", Rounding(places=1)),
        ("to zero decimal places", Rounding(places=0)),
        ("0 significant figures", Rounding(figures=1)),
        ("Write it in scientific notation.", Rounding(scientific=True)),
        ("3 significant figures, in Scientific Notation (1.23e+4)", Rounding(figures=3, scientific=True)),
        ("999 decimal places", Rounding(places=300)),
        ("The decimal 3 places it second; 10 figures were significant.", Rounding()),
        ("", Rounding()),
    ],
)
def test_the_rounding_that_a_text_requests_is_found(text: str, asked: Rounding) -> None:
    assert requested_rounding(text) == asked
    assert bool(asked) == (asked != Rounding())


@pytest.mark.parametrize(
    ("rounding", "value", "written"),
    [
        (Rounding(figures=3), Fraction(123456), "123000"),
        (Rounding(figures=3), Fraction(-2, 3), "-0.667"),
        (Rounding(figures=2), Fraction("0.00125"), "0.0013"),
        (Rounding(figures=2), Fraction("-0.125"), "-0.13"),
        (Rounding(figures=5), Fraction("2.50"), "2.5"),
        (Rounding(figures=2), Fraction(0), "0"),
        (Rounding(places=2), Fraction("2.675"), "2.68"),
        (Rounding(places=2), Fraction("-2.675"), "-2.68"),
        (Rounding(places=2), Fraction("-0.001"), "0"),
        (Rounding(places=0), Fraction("1000.5"), "1001"),
        (Rounding(places=3), Fraction(4), "4"),
        (Rounding(figures=3, places=1), Fraction("12.345"), "12.3"),
        (Rounding(figures=3, scientific=True), Fraction(1998) ** 3, "7.98e+9"),
        (Rounding(figures=3, scientific=True), Fraction("0.0034"), "3.40e-3"),
        (Rounding(scientific=True), Fraction(1, 3), "3.33333333333e-1"),
        (Rounding(figures=3, scientific=True), Fraction(0), "0.00e+0"),
        (Rounding(figures=1, scientific=True), Fraction(0), "0e+0"),
        (Rounding(figures=300, scientific=True), Fraction(0), f"0.{'0' * 299}e+0"),
        (Rounding(scientific=True), Fraction(0), "0.00000000000e+0"),
    ],
)
def test_a_value_is_written_as_requested(rounding: Rounding, value: Fraction, written: str) -> None:
    assert rounding.write(value) == written


@given(st.fractions(), st.integers(0, 30))
def test_rounded_to_places_a_value_is_off_by_half_a_place_at_most(value: Fraction, places: int) -> None:
    assert abs(Fraction(Rounding(places=places).write(value)) - value) <= Fraction(1, 2 * 10**places)


@given(st.fractions(), st.integers(1, 30))
def test_rounded_to_figures_a_value_is_off_by_half_a_figure_at_most(value: Fraction, figures: int) -> None:
    written = Fraction(Rounding(figures=figures, scientific=True).write(value))
    assert abs(written - value) <= Fraction(5, 10**figures) * abs(written)
