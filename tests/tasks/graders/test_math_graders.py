"""Graders of numbers and of mathematics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import GraderError
from podium.tasks.graders.math_graders import Math, Numeric
from podium.tasks.task import Grade

CLOSE_ENOUGH = [
    ("7", "Answer: 7"),
    ("7", "Answer: 7."),
    ("7", "Answer: **7**"),
    ("7", 'Answer: "7"'),
    ("7", '{\n  "reasoning": "3 + 4",\n  "answer": "7",\n}'),
    ("7", "<answer>7</answer>"),
    ("7", "So it is \\boxed{7}"),
    ("7", "Answer: 7.0"),
    ("7", "Answer: $7"),
    ("7", "Answer: \\$7.00"),
    ("7", "Answer: 7 %"),
    ("7", "Answer: 7\\%"),
    ("7", "Answer: 7 pages a day"),
    ("7", "Answer: 7 km/h"),
    ("7", "Answer: 3 + 4 = 7"),
    ("7", "Answer: x = 7"),
    ("-7", "Answer: -7"),
    ("-7", "Answer: \N{MINUS SIGN}7"),
    ("-7", "Answer: -$7"),
    ("1234.5", "Answer: 1,234.5"),
    ("1234567", "Answer: 1 234 567"),
    ("0.5", "Answer: .5"),
    ("30000", "Answer: 3e4"),
    ("1,200", "Answer: 1200"),
]
NOT_THE_NUMBER = [
    ("7", ""),
    ("7", "Answer:"),
    ("7", "Answer: seven"),
    ("7", "Answer: -7"),
    ("7", "Answer: 7 or 8"),
    ("8", "Answer: 7 or 8"),
    ("8", "Answer: 7, 8"),
    ("8", "Answer: x = 7 or x = 8"),
    ("8", "Answer: x = 7, x = 8"),
    ("7", "Answer: 7 dozen"),
    ("7", "Answer: 7 million"),
    ("7", "Answer: 7 and a half"),
    ("7", "Answer: 7x"),
    ("7", "Answer: 7 plus x"),
    ("7", "Answer: about 7"),
    ("7", "Answer: 7/1"),
    ("7", "Answer: 7e9999"),
    ("7", "It is 7.\nAnswer: 8"),
]


@pytest.mark.parametrize(("gold", "response"), CLOSE_ENOUGH)
def test_numeric_grader_accepts_a_number_in_any_format(gold: str, response: str) -> None:
    assert Numeric().judge(response, gold).score == 1


@pytest.mark.parametrize(("gold", "response"), NOT_THE_NUMBER)
def test_numeric_grader_rejects_other_numbers_and_text(gold: str, response: str) -> None:
    assert Numeric().judge(response, gold).score == 0


def test_the_larger_tolerance_holds() -> None:
    assert Numeric(absolute=0.5).judge("Answer: 10.4", "10").correct
    assert not Numeric(absolute=0.5).judge("Answer: 10.6", "10").correct
    assert Numeric(absolute=0.5, relative=0.1).judge("Answer: 10.9", "10").correct
    assert not Numeric().judge("Answer: 10.0001", "10").correct


@pytest.mark.parametrize("gold", ["ten", "", "3 or 4", "1e9999"])
def test_a_gold_answer_that_is_no_number_is_refused(gold: str) -> None:
    assert Numeric().gold_problem(gold) is not None


@given(number=st.decimals(-(10**12), 10**12, places=3))
def test_a_number_is_right_against_itself(number: object) -> None:
    assert Numeric().judge(f"Answer: {number}", str(number)).correct


MATH = Math()
Judge = Callable[..., Grade]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Grades on one event loop, so that processes are started once."""
    with asyncio.Runner() as runner:

        def graded(response: str, gold: str, grader: Math = MATH) -> Grade:
            return runner.run(grader(response, gold))

        yield graded


RIGHT = [
    # numbers and their dress
    ("12", "The answer is 12."),
    ("12", "**Answer:** 12 apples"),
    ("12", "Adding up:\n#### 12"),
    ("-7", "$\\boxed{-7}$"),
    ("10,080", "10080"),
    ("10080", "$\\boxed{10{,}080}$"),
    ("1000000", "10^6"),
    ("1.5 x 10^3", "1500"),
    ("2500000", "about half: 2.5 million"),
    ("18.90", "\\boxed{\\$18.9}"),
    ("0.5", "1/2"),
    ("\\frac12", '{"reasoning": "...", "answer": "\\\\frac{1}{2}"}'),
    ("3/2", "1 1/2"),
    ("\\frac{1}{3}", "0.\\overline{3}"),
    ("1e-8", "10^{-8}"),
    ("2.74", "2,74"),
    ("50", "50\\%"),
    ("50\\%", "50 percent"),
    ("45^\\circ", "45 degrees"),
    ("5", "\\boxed{5\\text{ cm}^2}"),
    ("5\\text{ cm}", "5"),
    ("5", "5 L"),
    ("17", "The total is 10 + 7 = 17."),
    ("120", "5!"),
    ("101_2", "101_{2}"),
    ("\\frac13", "0.\\dot{3}"),
    ("\\frac17", "0.\\dot{1}4285\\dot{7}"),
    ("1/6", "0.1(6)"),
    ("1234.5", "€1.234,50"),
    ("1234567", "1.234.567"),
    ("12.5", "12½"),
    ("1/3", "⅓"),
    ("10000", "10⁴"),
    ("0.01", "10⁻²"),
    ("12", "\\boxed{12 \\mathrm{~m/s}}"),
    ("5", "\\boxed{5 \\mu m}"),
    ("5", "\\boxed{5\\,\\Omega}"),
    ("4.2\\%", "\\boxed{4\\frac{1}{5}\\%}"),
    ("\\frac{13}{3}\\%", "\\boxed{4\\frac{1}{3}\\%}"),
    ("10^{-20}", "\\frac{1}{10^{20}}"),
    # formulas
    ("B \\cup A", "\\boxed{A \\cup B}"),
    ("\\emptyset", "\\boxed{\\{\\}}"),
    ("-1", "e^{i\\pi}"),
    ("-i", "e^{-i\\pi/2}"),
    ("\\sqrt{\\frac{1}{n}}", "$\\frac{1}{\\sqrt{n}}$"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "$\\langle 1, 2 \\rangle$"),
    ("k\\pi", "\\pi k, k \\in \\mathbb{Z}"),
    ("\\frac{\\sqrt{3}}{3}", "\\frac{1}{\\sqrt3}"),
    ("2\\sqrt{2}", "√8"),
    ("x^2 + 2x + 1", "\\boxed{(x+1)^2}"),
    ("\\frac{n^2+n}{2}", "n(n+1)/2"),
    ("3 + 4i", "4i + 3"),
    ("\\pi", "π"),
    ("y = 2x + 3", "y - 3 = 2x"),
    ("2x + 3", "f(x) = 2x + 3"),
    ("f(n) = n + 1", "f(x) = x + 1"),
    ("x = 7", "7"),
    ("7", "x = 7"),
    ("7", "x = 3 + 4 = 7"),
    ("\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", "It is $\\begin{bmatrix} 1 \\\\ 2 \\end{bmatrix}$."),
    # sets, points, intervals, relations
    ("1, 2, 3", "The roots are 3, 1 and 2."),
    ("\\{1, 2\\}", "\\boxed{2}, \\boxed{1}"),
    ("\\pm 6", "6 or -6"),
    ("x = 2, x = 3", "3, 2"),
    ("(3, \\frac{\\pi}{2})", "\\boxed{(3, \\pi/2)}"),
    ("(1,2), (3,4)", "(3,4), (1,2)"),
    ("(-\\infty, 3) \\cup (5, \\infty)", "(-∞, 3) ∪ (5, ∞)"),
    ("x > 3", "3 < x"),
    ("x > 3", "(3, \\infty)"),
    ("\\emptyset", "\\varnothing"),
    # words
    ("\\text{Evelyn}", "The answer is Evelyn."),
    ("\\text{Evelyn}", "So the fastest of them was **Evelyn**"),
    ("\\text{(C)}", "\\boxed{C}"),
    ("No solution", "\\text{no solution}"),
]

WRONG = [
    ("2^{-99}", "2^{-98}"),
    ("\\frac{1}{2004!}", "\\frac{1}{2006!}"),
    ("\\frac{2^{2005}+1}{3 \\cdot 2^{2006}}", "\\frac{1}{3 \\cdot 2^{2006}}"),
    ("2e-12", "1e-12"),
    ("\\sqrt{x^2}", "x"),
    ("B \\cup A", "A \\cap B"),
    ("B \\setminus A", "A \\setminus B"),
    ("\\begin{pmatrix} 2 \\\\ 1 \\end{pmatrix}", "(1, 2)"),
    ("102", "10²"),
    ("5", ""),
    ("5", " \n "),
    ("5", "\\boxed{}"),
    ("5", "I do not know."),
    ("5", "four plus one"),
    ("5", "4"),
    ("5", "-5"),
    ("40", "-$40"),
    ("5", "5 million"),
    ("5", "4/5"),
    ("6", "The sum is 4 + 2 ="),
    ("0.333", "1/3"),
    ("10^{-9}", "0"),
    ("0.00000001", "0.0"),
    ("100200", "(100,200)"),
    ("2t", "2"),
    ("5", "5x"),
    ("5", "abc + 5"),
    ("101_2", "101_3"),
    ("12:00", "1:00"),
    ("1 - \\frac{1}{\\mathrm{e}}", "1"),
    ("1 - \\frac{1}{\\mathrm{e}}", "1 + \\frac{1}{\\mathrm{e}}"),
    ("2x + 3", "3x + 2"),
    ("x^2 + 1 = 0", "x^2 + 2 = 0"),
    ("(1, 2)", "(2, 1)"),
    ("[1, 2]", "(1, 2)"),
    ("x > 3", "x \\ge 3"),
    ("x > 3", "x < 3"),
    ("\\text{Evelyn}", "Carla"),
    ("\\text{Evelyn}", "It was **Carla** or **Evelyn**"),
    ("\\text{odd}", "\\text{ddo}"),
]

MANY = [
    "{}, {}, {}",
    "{} or {} or {}",
    "{} and {} and {}",
    "{}; {}; {}",
    "{}\n{}\n{}",
    "- {}\n- {}\n- {}",
    "${}$, ${}$, ${}$",
    "\\boxed{{{}}}, \\boxed{{{}}}, \\boxed{{{}}}",
    "\\boxed{{{} \\text{{ or }} {} \\text{{ or }} {}}}",
    "\\{{{}, {}, {}\\}}",
    "({}, {}, {})",
    "[{}, {}, {}]",
    "x = {}, {}, {}",
    "x = {} or x = {} or x = {}",
    "either {}, or maybe {}, or maybe {}",
    "possibly {}, possibly {}, perhaps {}",
    "{} / {} / {}",
    "{} | {} | {}",
    "{} {} {}",
]


@pytest.mark.parametrize(("gold", "response"), RIGHT)
def test_an_equal_value_is_right_however_it_is_written(judge: Judge, gold: str, response: str) -> None:
    assert judge(response, gold).correct


@pytest.mark.parametrize(("gold", "response"), WRONG)
def test_math_grader_rejects_another_value(judge: Judge, gold: str, response: str) -> None:
    assert judge(response, gold).score == 0


@pytest.mark.parametrize("form", ["{}", "Answer: {}", "<answer>{}</answer>", "So the final answer is {}."])
@pytest.mark.parametrize("many", MANY)
def test_an_answer_that_lists_everything_scores_0(judge: Judge, many: str, form: str) -> None:
    for values in (("11", "12", "13"), ("12", "13", "11"), ("13", "11", "12")):
        assert judge(form.format(many.format(*values)), "11").score == 0


def test_a_long_list_is_a_list_to_its_last_value(judge: Judge) -> None:
    for joint in (", ", " or ", "$, $"):
        listed = joint.join(str(number) for number in range(1, 40))
        for gold in ("1", "7", "39"):
            assert judge(f"${listed}$", gold).score == 0


def test_the_right_answer_among_many_words_earns_nothing(judge: Judge) -> None:
    told = "One might think of 11, and 11 is close. \\boxed{11} is what many say! But that is wrong. "
    assert judge(told * 30 + "The final answer is 12.", "11").score == 0
    assert judge(told * 30 + "\\boxed{12}", "11").score == 0
    assert judge("Answer: 11\n\nOn reflection:\n\nAnswer: 12", "11").score == 0


def test_the_last_box_counts(judge: Judge) -> None:
    response = "First \\boxed{4}. No, that was a slip, and so I computed all of it anew. It is \\boxed{5}."
    assert judge(response, "5").correct
    assert judge(response, "4").score == 0
    assert judge(response, "5").found == "5"


def test_math_grader_settings_change_which_answers_are_right(judge: Judge) -> None:
    assert judge("0.33", "1/3", Math(decimals=2)).correct
    assert judge("f(y)", "f(x)", Math(strict=False)).correct
    assert not judge("f(y)", "f(x)").correct
    assert judge("1 < x < 2", "x \\in (1, 2)", Math(relations_as_sets=True)).correct
    assert not judge("1 < x < 2", "x \\in (1, 2)").correct
    assert judge("It is $5$", "5", Math(answer="formula")).correct
    assert not judge("It is 5", "5", Math(answer="formula")).correct
    assert not judge("It is \\boxed{5}", "5", Math(answer="tag")).correct


GOLDS = (
    "7", "-7", "0", "1,234", "3.50", "\\frac{3}{4}", "-\\frac{1}{2}", "2\\frac{1}{3}", "50\\%", "\\$12.50", "10^{-3}",
    "\\sqrt{2}", "3\\sqrt{5} - 1", "\\pi r^2", "e^{x}", "\\log_2 x", "\\sin^2 x", "x^2 - 2x + 1", "n!", "\\binom{n}{k}",
    "3 + 4i", "\\frac{a + b}{c}", "|x|", "\\lfloor x \\rfloor", "y = 2x + 1", "x^2 + y^2 = 1", "x > 3", "1 < x \\le 2",
    "(1, 2)", "(1, 2, 3)", "[0, 1)", "(-\\infty, 3) \\cup (5, \\infty)", "\\{1, 2, 3\\}", "1, 2, 3", "\\pm 2",
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}", "90^\\circ", "15\\text{ cm}^2", "7:32", "12:30", "101_2",
    "0.\\overline{6}", "\\infty", "\\emptyset", "\\text{Evelyn}", "\\text{(C)}", "C", "no solution", "f(x) = x + 1",
    "p \\implies q", "\\langle 1, 2 \\rangle", "x \\in \\mathbb{R}", "\\text{6 and 8}", "2.5 million",
)  # fmt: skip


@pytest.mark.parametrize("gold", GOLDS)
def test_a_gold_answer_is_right_against_itself(judge: Judge, gold: str) -> None:
    assert MATH.gold_problem(gold) is None
    for form in (
        "{}",
        "Let me see. 1 + 1.\n\nAnswer: {}",
        "So $\\boxed{{{}}}$.",
        "<answer>{}</answer>",
        "Then ${}$",
    ):
        assert judge(form.format(gold), gold).correct, form


@pytest.mark.parametrize("gold", ["", "  ", ".", "perhaps 2 or maybe 3", "9" * 5000])
def test_a_gold_answer_that_says_nothing_is_refused_and_not_graded_by(judge: Judge, gold: str) -> None:
    assert MATH.gold_problem(gold) is not None
    with pytest.raises(GraderError, match="states no value"):
        judge("5", gold)


def test_equal_settings_are_equal_also_when_one_has_graded(judge: Judge) -> None:
    used, fresh = Math(decimals=3), Math(decimals=3)
    assert judge("1/3", "0.333", used).correct
    assert used == fresh
    assert hash(used) == hash(fresh)


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("She has **63** apples.", 1),
        ("Answer: **63** apples", 1),
        ("The answer is **63** apples.", 1),
        ("There are $63$ students.", 1),
        ("It is __63__.", 1),
        ("Sum: 63", 1),
        ("The sum is 63.\n\nLet me know if you have other questions.", 1),
        ("There are 3 boxes of **21**, so 64", 0),
        ("The answer is not **63**.", 0),
        ("It is about 63", 0),
    ],
)
def test_a_number_counts_in_emphasis_and_behind_a_label(response: str, score: float) -> None:
    assert Numeric(answer="stated", sentences=True).judge(response, "63").score == score
