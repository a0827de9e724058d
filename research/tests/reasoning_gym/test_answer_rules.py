"""What the library's verifiers take too lightly is not admitted to them; what is right is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_research.reasoning_gym.answer_rules import passes_rules


@dataclass(frozen=True)
class Case:
    """A generator's question with answers of both kinds."""

    generator: str
    gold: str | None
    admitted: tuple[str, ...]
    refused: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def entry(self) -> dict[str, Any]:
        return {"answer": self.gold, "metadata": dict(self.metadata)}


INTEGRAL = {"variable": "x"}
BOARDS = {"valid_answers": ["_ Q\nQ _"]}
CARS = {"board_config": "oooooooooooooAAooooooooooooooooooooo"}
BOXES = {"initial_state": {"0.5_0.5": ["box_red"], "0.5_1.5": ["target_red"]}}
CASES = (
    Case("advanced_geometry", "(7.8, 7.9)", ("(7.8, 7.9)", "7.80, 7.91"), ("(7.8, 7.9), (1, 2)", "7.8")),
    Case("binary_matrix", "0 1\n1 0", ("0 1\n1 0",), ("[[0, 1], [1, 0]]", "__import__('os').getcwd()")),
    Case(
        "boxnet",
        None,
        (
            '[{"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])"},'
            ' {"Agent[0.5, 1.5]": "move(box_red, target_red)"}]',
        ),
        (
            '[{"Agent[0.5, 1.5]": "move(box_red, target_red)"},'
            ' {"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])"}]',
            '[{"Agent[0.5, 0.5]": "move(box_red, square[0.5, 1.5])", "Agent[0.5, 0.5]": "wait"}]',
            "[] or nothing",
        ),
        BOXES,
    ),
    Case("calendar_arithmetic", "-1", ("-1",), ("5", "-1 or 5")),
    Case("calendar_arithmetic", "6001", ("6001",), ("6000",)),
    Case("codeio", '{"a": 1}', ('{"a": 1}', "17"), ('{"a": 2, "a": 1}',)),
    Case(
        "coin_flip",
        "0.1171875",
        ("0.1171875", "15/128", "0.1172", "1.171875e-1"),
        ("0", "0.1", "0.", "1e-999999999"),
    ),
    Case("complex_arithmetic", "8.0 + 3.0i", ("8 + 3i",), ("nan", "inf", "8 + NaNi")),
    Case("countdown", "8*3", ("8*3", "(8 * 3)"), ("8**3", "8//3", "Integer(24)", "8*3 = 24", "x")),
    Case("cryptarithm", "A=1,B=2", ("B=2, A=1",), ("A=2,A=1,B=2", "A=1")),
    Case(
        "figlet_font", "PROGRAMMING", ("programming", "P R O G R A M M I N G"), ("PROGRAMMINGS", "PROGRAMMIN")
    ),
    Case(
        "fraction_simplification",
        "$\\frac{1}{2}$",
        ("1/2", "\\dfrac{1}{2}"),
        ("\\frac{1}{2} or \\frac{3}{4}", "1/2, maybe"),
    ),
    Case("game_of_life", "[[0,1]]", ("[[0, 1]]",), ("[[0, 1, 1]]", "[[0, 1], [1, 1]]", "0 1")),
    Case("game_of_life_halting", "True", ("True", "true"), ("False", "I do not know", "True or False")),
    Case("graph_color", None, ('{"0": 1}',), ('{"0": 1, "0": 2}',)),
    Case("gsm_symbolic", "20", ("20", "20 apples", "$20.0"), ("20 or 30", "-20", "many")),
    Case(
        "intermediate_integration",
        "exp(x) + C",
        ("exp(x) + C", "x*asin(3*x)/2 - ln(x)"),
        ("Integral(x, x)", "x.diff()", "open('f')", "y", "x;x", "1e999999999*x", "2x"),
        INTEGRAL,
    ),
    Case("kakurasu", "1 0\n0 1", ("1 0\n0 1", "[1, 0]\n[0, 1]"), ("1 0\n0 1 or 2", "not 1 0\n0 1")),
    Case(
        "knights_knaves",
        "Zoey is a knight, and Ann is a knave.",
        ("Ann is a knave and Zoey is a knight",),
        ("Zoey is a knight and a knave, and Ann is a knave and a knight.",),
    ),
    Case("letter_jumble", "full moon", ("Full moon",), ("full moon, new moon",)),
    Case("n_queens", "_ Q\nQ _", ("_ Q\nQ _",), ("[['_', 'Q'], ['Q', '_']]", "print(1)"), BOARDS),
    Case("number_sorting", "['-1.0', '2.5']", ('["-1", "2.5"]', "[-1.0, 2.50]"), ("[NaN, NaN]", "[-1, 3]")),
    Case(
        "polynomial_equations",
        "-0.5, 0.5",
        ("-0.5, 0.5", "-.5, 0.50"),
        ("-0.5, 0.5, 1 or 2", "none", "x1, -0.5, 0.5"),
    ),
    Case(
        "polynomial_multiplication",
        "x**2 - 1",
        ("x**2 - 1",),
        ("expand((x + 1)*(x - 1))", "x**2 - y"),
        {"variables": ["x"]},
    ),
    Case("propositional_logic", None, ("(P ∧ ¬Q)",), ("p", "P and Q", "P ∨ x1")),
    Case(
        "puzzle24",
        "8*3*1*1",
        ("8*3*1*1", "(1*1)*8*3"),
        ("24*1*1*1", "8*3+1*1", "8*3"),
        {"numbers": [8, 3, 1, 1]},
    ),
    Case("quantum_lock", "A → B", ("A → B", "a, b", "A->B", "AB"), ("press A then B", "D")),
    Case("rubiks_cube", None, ("U R' F2", "U"), ("U999999999", "turn U")),
    Case("rush_hour", None, ("A+2", "A+1 A-1"), ("A+9", "B+1", "go A+1", "A+1 or A+2"), CARS),
    Case("simple_integration", "x**2 + C", ("x**2 + C",), ("integrate(2*x, x)",), INTEGRAL),
    Case("sokoban", "LDUR", ("LDUR", "L D U R", "L,D,U,R", "LD UR"), ("left", "LDUR\nRRLL", "LDUR or RR")),
    Case("spell_backward", "olleh", ("OLLEH",), ("olleh hello", "olle")),
    Case("spiral_matrix", "1 2 3", ("1 2 3",), ("[1, 2, 3]", "exit()")),
    Case("string_insertion", "ABCD", ("ABCD",), ("['A', 'B', 'C', 'D']", "exit()")),
    Case("survo", "1 2\n3 4", ("1 2\n3 4",), ("1 2\n3 4 or 5", "is it 1 2\n3 4")),
    Case(
        "time_intervals",
        "67 days, 01:04:00",
        ("67 days, 1:04:00",),
        ("67 days, 01:04:00 or 68 days", "67 days, 01:04:00, surely"),
    ),
    Case("time_intervals", "5 days", ("5 days", "5 day", "5 D"), ("5 or 6 days", "4 days, 5 days")),
    Case("word_ladder", "SEES,BEES", ("SEES, BEES",), ("SEES,BEES,SEES,BEES",)),
    Case("word_sorting", "a, b", ("a, b", "a,b"), ("a, b, c", "b, a")),
)


def admitted(case: Case, answer: str) -> bool:
    """As the library is asked: an answer that a rule cannot read is none."""
    try:
        return passes_rules(case.generator, answer, case.entry)
    except Exception:
        return False


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.generator}: {case.gold}")
def test_answer_rule_admits_right_forms_and_refuses_lax_matches(case: Case) -> None:
    assert {answer: admitted(case, answer) for answer in case.admitted} == dict.fromkeys(case.admitted, True)
    assert {answer: admitted(case, answer) for answer in case.refused} == dict.fromkeys(case.refused, False)


def test_a_generator_without_a_rule_leaves_all_to_its_verifier() -> None:
    assert passes_rules("maze", "anything", {"answer": "3", "metadata": {}})


@given(case=st.sampled_from(CASES), answer=st.text(alphabet="abC_x .()[]'\"\\123+-*/=,:;{}\n", max_size=60))
def test_answer_rule_refuses_text_that_could_run_python_in_a_verifier(case: Case, answer: str) -> None:
    evaluated = {"binary_matrix", "countdown", "n_queens", "puzzle24", "spiral_matrix", "string_insertion"}
    if case.generator in evaluated and admitted(case, answer):
        assert answer in case.admitted or not any(sign.isalpha() or sign in "_[]'\"" for sign in answer)
