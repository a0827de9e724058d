"""How a text wants a number written, and the number so written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.workers.calculator import AnswerRounding, requested_rounding


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Solve it to a maximum of 10 significant digits.", AnswerRounding(figures=10)),
        ("Give three significant figures.", AnswerRounding(figures=3)),
        ("to 4 sig. figs", AnswerRounding(figures=4)),
        ("Round to 2 decimal places.", AnswerRounding(decimals=2)),
        ("with two decimals, no: with 1 decimal digit", AnswerRounding(decimals=1)),
        ("to zero decimal places", AnswerRounding(decimals=0)),
        ("0 significant figures", AnswerRounding(figures=1)),
        ("Write it in scientific notation.", AnswerRounding(scientific=True)),
        (
            "3 significant figures, in Scientific Notation (1.23e+4)",
            AnswerRounding(figures=3, scientific=True),
        ),
        ("999 decimal places", AnswerRounding(decimals=300)),
        ("The decimal 3 places it second; 10 figures were significant.", AnswerRounding()),
        ("", AnswerRounding()),
    ],
)
def test_the_rounding_that_a_text_requests_is_found(text: str, asked: AnswerRounding) -> None:
    assert requested_rounding(text) == asked
    assert bool(asked) == (asked != AnswerRounding())


@pytest.mark.parametrize(
    ("rounding", "value", "written"),
    [
        (AnswerRounding(figures=3), Fraction(123456), "123000"),
        (AnswerRounding(figures=3), Fraction(-2, 3), "-0.667"),
        (AnswerRounding(figures=2), Fraction("0.00125"), "0.0013"),
        (AnswerRounding(figures=2), Fraction("-0.125"), "-0.13"),
        (AnswerRounding(figures=5), Fraction("2.50"), "2.5"),
        (AnswerRounding(figures=2), Fraction(0), "0"),
        (AnswerRounding(decimals=2), Fraction("2.675"), "2.68"),
        (AnswerRounding(decimals=2), Fraction("-2.675"), "-2.68"),
        (AnswerRounding(decimals=2), Fraction("-0.001"), "0"),
        (AnswerRounding(decimals=0), Fraction("1000.5"), "1001"),
        (AnswerRounding(decimals=3), Fraction(4), "4"),
        (AnswerRounding(figures=3, decimals=1), Fraction("12.345"), "12.3"),
        (AnswerRounding(figures=3, scientific=True), Fraction(1998) ** 3, "7.98e+9"),
        (AnswerRounding(figures=3, scientific=True), Fraction("0.0034"), "3.40e-3"),
        (AnswerRounding(scientific=True), Fraction(1, 3), "3.33333333333e-1"),
        (AnswerRounding(figures=3, scientific=True), Fraction(0), "0.00e+0"),
        (AnswerRounding(figures=1, scientific=True), Fraction(0), "0e+0"),
        (AnswerRounding(figures=300, scientific=True), Fraction(0), f"0.{'0' * 299}e+0"),
        (AnswerRounding(scientific=True), Fraction(0), "0.00000000000e+0"),
    ],
)
def test_a_value_is_written_as_requested(rounding: AnswerRounding, value: Fraction, written: str) -> None:
    assert rounding.write(value) == written


@given(st.fractions(), st.integers(0, 30))
def test_rounding_to_places_errs_by_at_most_half_a_place(value: Fraction, places: int) -> None:
    assert abs(Fraction(AnswerRounding(decimals=places).write(value)) - value) <= Fraction(1, 2 * 10**places)


@given(st.fractions(), st.integers(1, 30))
def test_rounding_to_figures_errs_by_at_most_half_a_figure(value: Fraction, figures: int) -> None:
    written = Fraction(AnswerRounding(figures=figures, scientific=True).write(value))
    assert abs(written - value) <= Fraction(5, 10**figures) * abs(written)
