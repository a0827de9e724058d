"""Ways of writing the same mathematics become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.tasks.graders.notation import plain_latex


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
def test_dress_is_taken_off(written: str, plain: str) -> None:
    assert plain_latex(written) == plain


@given(text=st.text(st.sampled_from("123.,+-^()[]{}\\$ abcefioqrst%°√½₁"), max_size=40))
def test_any_text_has_a_plain_form(text: str) -> None:
    assert plain_latex(text) == plain_latex(f" {text} ")
