"""The mathematics in a statement: which of it is taken, and how it is written."""

from __future__ import annotations

import time

import pytest

from podium.tasks.graders.latex import Expression, expression, normalise_latex


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("5", "5"),
        ("5 apples", "5"),
        ("There are 5 of 6 apples, so 12 in all", "12"),
        ("the speed is 50 miles per hour", "50"),
        ("3 + 4 = 7 dollars", "3 + 4 = 7"),
        ("(3 days * 20 miles/day) = 60 miles", "60"),
        ("$15 a day", "15"),
        ("16cm", "16"),
        ("16 cm^2", "16"),
        ("5\\text{ meters}", "5"),
        ("15\\mbox{ cm}^2", "15"),
        ("the largest $n$ is 34.", "34"),
        ("the area is $\\pi r^2$.", "\\pi r^2"),
        ("x \\to 3", "3"),
        ("2x = 6 => x = 3", "x = 3"),
        ("2.5 million dollars", "2.5 \\cdot 10^{6}"),
        ("the answer is x", "x"),
        ("3abc", "3abc"),
        ("abc + 5", "abc + 5"),
        ("x_{max} = 5", "x_{max} = 5"),
        ("ext{13}", "ext{13}"),
        ("about 6th", "6"),
        (
            "A = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix} is it",
            "A = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
        ),
        ("(5 items", "5"),
        ("[1, 2)", "[1, 2)"),
    ],
)
def test_the_last_value_is_taken(statement: str, text: str) -> None:
    assert expression(statement) == Expression(text)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("1 or 2 or 3", "1, 2, 3"),
        ("1, 2, and 3", "1, 2, 3"),
        ("the roots are 1 and 2", "1, 2"),
        ("$1$, $2$ and $3$", "1, 2, 3"),
        ("5 hours and 30 minutes", "5, 30"),
        ("12 \\text{ and } 13", "12, 13"),
        ("(11,7)or(7,11)", "(11,7), (7,11)"),
    ],
)
def test_joined_values_are_one_list(statement: str, text: str) -> None:
    assert expression(statement) == Expression(text)


@pytest.mark.parametrize(
    "statement", ["", " . ", "{}", "perhaps 2 or maybe it is 3", "either $2$ or possibly $3$", "1" * 5000]
)
def test_empty_or_hedged_latex_statement_yields_no_expression(statement: str) -> None:
    assert expression(statement) is None


@pytest.mark.parametrize(
    "statement", ["Evelyn", "\\text{Evelyn}", "There is no solution", "\\text{(C)}", "odd"]
)
def test_latex_words_are_recognised_as_words(statement: str) -> None:
    said = expression(statement)
    assert said is not None
    assert said.words


def test_a_letter_behind_a_number_is_a_unit_where_golds_have_no_letters() -> None:
    metres = Expression("5 m")
    assert metres.without_unit(Expression("5")) == Expression("5")
    assert metres.without_unit(Expression("5 t")) == metres
    assert Expression("5x").without_unit(Expression("5")) == Expression("5x")


def test_a_hostile_statement_is_read_in_bounded_time() -> None:
    started = time.process_time()
    pieces = (
        "(",
        ")",
        "[",
        "{",
        "}",
        "\\text{",
        "\\text{ ",
        "sqrt(",
        "^(",
        " ",
        ",",
        ", ",
        "and ",
        "1 and ",
        "a b ",
    )
    pieces += (
        "\\",
        "\\begin{",
        "\\begin{a}",
        "\\begin{cases}",
        "**",
        "1,000",
        "1 ",
        "$",
        "-$",
        "\\overline{",
        "%",
    )
    for piece in pieces:
        for before in ("", "word "):
            expression((before + piece * 2000)[:2000])
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\\dfrac{1}{2}", "\\frac{1}{2}"),
        ("½", "\\frac{1}{2}"),
        ("1 1/2", "1\\frac{1}{2}"),
        ("1 000 000", "1000000"),
        ("1{,}000", "1000"),
        ("1,\\!000,\\!000", "1000000"),
        ("12,000 - 5,000", "12000 - 5000"),
        ("(100,200)", "(100,200)"),
        ("\\{100,200\\}", "\\{100,200\\}"),
        ("1, 200", "1, 200"),
        ("0,125", "0,125"),
        (".5", "0.5"),
        ("-$5", "-5"),
        ("\\$5", "5"),
        ("$x = 5$", "x = 5"),
        ("2**3", "2^3"),
        ("2 = **2**", "2 = 2"),
        ("x^(n+1)", "x^{n+1}"),
        ("sqrt(2 + sqrt(3))", "\\sqrt{2 + \\sqrt{3}}"),
        ("√12", "\\sqrt{12}"),
        ("floor(7/2)", "\\lfloor 7/2\\rfloor"),
        ("0.\\overline{3}", "\\frac{1}{3}"),
        ("0.1\\overline{6}", "\\frac{1}{6}"),
        ("3e8", "3\\cdot 10^{8}"),
        ("45^\\circ", "45"),
        ("20°C", "20"),
        ("28 percent", "28\\%"),
        ("3 \\pmod{7}", "3"),
        ("101₂", "101_{2}"),
        ("\\left( 1, \\infty \\right)", "( 1, \\infty )"),
        ("\\begin{cases} x = 1 \\\\ y = 2 \\end{cases}", "x = 1, y = 2"),
        ("{1, 2}", "1, 2"),
    ],
)
def test_latex_is_normalised_to_its_plain_form(written: str, plain: str) -> None:
    assert normalise_latex(written) == plain
