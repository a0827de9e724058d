"""Rules that an answer must pass before the library's verifier judges it, where the verifier is too lenient.

The library gives its whole score to answers that name several values, to ones that hold the right one among others,
to `NaN`, or to any text at all; and a few of its verifiers evaluate answers as Python. Each rule says for one answer
and its question whether the verifier may judge it. A rule never makes an answer right. Generators without a rule
verify well enough by themselves. Seen in reasoning-gym 0.1.25.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

Rule = Callable[[str, Mapping[str, Any]], bool]
"""Of an answer and the library's entry. It may raise: then the answer is not admitted."""

_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_PROBABILITY = re.compile(r"\d{0,9}\.?\d{1,30}(?:[eE]-?\d{1,2})?|\d{1,15}/\d{1,15}")
_SUM = re.compile(r"[\d\s()+\-*/]+")
_TOKEN = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?(?![\w.])|([A-Za-z_]\w*)|[-+*/^(),]|\s+")
_FUNCTION = re.compile(r"Abs|E|exp|ln|log|pi|sqrt|a?(?:sin|cos|tan)h?|cot|csc|sec")
_FILLERS = frozenset({"a", "an", "and", "is"})


def passes_rules(generator: str, answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether the verifier of a generator may judge an answer; raises what parsers raise."""
    rule = _RULES.get(generator)
    return rule is None or rule(answer, entry)


def _same(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer, but for case and space."""
    return _squeezed(answer) == _squeezed(entry["answer"])


def _exactly(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer: whatever else comes here is evaluated as Python for a part of the score."""
    return bool(answer == entry["answer"].strip())


def _same_json(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's value: a larger grid that begins with it is another one."""
    return bool(json.loads(answer) == json.loads(entry["answer"]))


def _same_words(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's words in any order: no one is both knight and knave."""
    return _said(answer) == _said(entry["answer"])


def _same_numbers(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's numbers and no others, whatever stands between them."""
    return _numbers(answer) == _numbers(entry["answer"])


def _alike(answer: str, entry: Mapping[str, Any]) -> bool:
    """As many numbers as the gold answer has, and none but its words: the first of several values is not the one."""
    gold = entry["answer"]
    return len(_numbers(answer)) == len(_numbers(gold)) and _stems(answer) <= _stems(gold)


def _fraction(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's two numbers, in LaTeX or not, and nothing behind the first fraction."""
    return _same_numbers(answer, entry) and _stems(answer) <= {"frac", "dfrac"}


def _each_once(answer: str, entry: Mapping[str, Any]) -> bool:
    """A ladder that comes to no word twice: not one written twice over."""
    rungs = _squeezed(answer).split(",")
    return len(rungs) == len(set(rungs))


def _as_many_letters(answer: str, entry: Mapping[str, Any]) -> bool:
    """One digit for each letter: the last of several is not taken for the only one."""
    return answer.count("=") == str(entry["answer"]).count("=")


def _finite(answer: str, entry: Mapping[str, Any]) -> bool:
    """Of numbers alone: the distance to `nan` is less than any."""
    return not re.search("nan|inf", answer, re.IGNORECASE)


def _probable(answer: str, entry: Mapping[str, Any]) -> bool:
    """Within a hundredth of the gold answer: `0` begins as `0.25` does, and is taken for it."""
    return bool(_PROBABILITY.fullmatch(answer)) and math.isclose(
        float(Fraction(answer)), float(entry["answer"]), rel_tol=0.01
    )


def _in_keys_once(answer: str, entry: Mapping[str, Any]) -> bool:
    """JSON, if it is any, that gives no key two values."""
    try:
        json.loads(answer, object_pairs_hook=_unrepeated)
    except json.JSONDecodeError:
        return True
    return True


def _sum(answer: str, entry: Mapping[str, Any]) -> bool:
    """Numbers, brackets and the four operators: it is evaluated as Python."""
    return bool(_SUM.fullmatch(answer)) and "**" not in answer and "//" not in answer


def _sum_to_24(answer: str, entry: Mapping[str, Any]) -> bool:
    """A sum of the question's own numbers whose value is 24: the verifier looks at neither."""
    from sympy import parse_expr  # noqa: PLC0415 - comes with the library

    if not _sum(answer, entry):
        return False
    used = sorted(int(number) for number in re.findall(r"\d+", answer))
    return used == sorted(entry["metadata"]["numbers"]) and bool(parse_expr(answer) == 24)


def _integral(answer: str, entry: Mapping[str, Any]) -> bool:
    """A formula of the variable, C and plain functions: no `Integral(...)`, whose derivative is the question."""
    functions = _names(answer) - {entry["metadata"]["variable"], "C"}
    return all(map(_FUNCTION.fullmatch, functions))


def _polynomial(answer: str, entry: Mapping[str, Any]) -> bool:
    """A formula of the variables: no `expand(...)` of the question."""
    return _names(answer) <= set(entry["metadata"]["variables"])


def _names(formula: str) -> set[str]:
    """The names in a formula, which is evaluated as Python: so nothing may stand there but numbers and operators."""
    if _TOKEN.sub("", formula):
        raise ValueError(f"{formula!r} is no formula")
    return {match[1] for match in _TOKEN.finditer(formula) if match[1]}


def _written_in(pattern: str) -> Rule:
    """Words of one kind alone: letters of prose are no moves."""
    kind = re.compile(pattern)
    return lambda answer, entry: all(map(kind.fullmatch, answer.split()))


def _steps(answer: str, entry: Mapping[str, Any]) -> bool:
    """Steps in one line, or one by one: lines of them are several solutions."""
    return bool(re.fullmatch(r"[DLRU ]+|[DLRU](?:[\s,]+[DLRU])*", answer))


def _solution_of_queens(answer: str, entry: Mapping[str, Any]) -> bool:
    """One of the boards: whatever else comes here is evaluated as Python for a part of the score."""
    return bool(answer in entry["metadata"]["valid_answers"])


def _moves_of_cars(answer: str, entry: Mapping[str, Any]) -> bool:
    """Steps that all can be made: the verifier passes over the others, so that trying all would end well."""
    from reasoning_gym.games.rush_hour import Board  # noqa: PLC0415 - the library

    board = Board(entry["metadata"]["board_config"])
    if not re.fullmatch(r"(?:[A-Z][+-]\d[\s,]*)+", answer):
        return False
    for car, sign, steps in re.findall(r"([A-Z])([+-])(\d)", answer):
        for _ in range(int(steps)):
            before = str(board)
            board.perform_moves(f"{car}{sign}1")
            if str(board) == before:
                return False
    return True


def _moves_of_boxes(answer: str, entry: Mapping[str, Any]) -> bool:
    """Actions that all change something: the verifier passes over the others, so that trying all would end well."""
    from reasoning_gym.games.boxnet import action_from_response  # noqa: PLC0415 - the library

    boxes = entry["metadata"]["initial_state"]
    for step in json.loads(answer, object_pairs_hook=_unrepeated):
        for mover, action in step.items():
            moved = action_from_response(boxes, [{mover: action}])
            if moved == boxes:
                return False
            boxes = moved
    return True


def _squeezed(text: str) -> str:
    return "".join(text.casefold().split())


def _said(text: str) -> Counter[str]:
    return Counter(word for word in re.findall(r"\w+", text.casefold()) if word not in _FILLERS)


def _stems(text: str) -> set[str]:
    """The words of a text, in the singular; a letter is a unit, or a name."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{2,}", text.casefold())}


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in _NUMBER.findall(text)]


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key has two values")
    return values


_RULES: Mapping[str, Rule] = {
    "advanced_geometry": _alike,
    "binary_matrix": _exactly,
    "boxnet": _moves_of_boxes,
    "calendar_arithmetic": _same,
    "codeio": _in_keys_once,
    "coin_flip": _probable,
    "complex_arithmetic": _finite,
    "countdown": _sum,
    "cryptarithm": _as_many_letters,
    "figlet_font": _same,
    "fraction_simplification": _fraction,
    "game_of_life": _same_json,
    "game_of_life_halting": _same,
    "graph_color": _in_keys_once,
    "gsm_symbolic": _same_numbers,
    "intermediate_integration": _integral,
    "kakurasu": _written_in(r"[01,\[\]]+"),
    "knights_knaves": _same_words,
    "letter_jumble": _same,
    "n_queens": _solution_of_queens,
    "number_sorting": _same_numbers,
    "polynomial_equations": _alike,
    "polynomial_multiplication": _polynomial,
    "propositional_logic": _written_in(r"[A-Z()∧∨¬→↔]+"),
    "puzzle24": _sum_to_24,
    "quantum_lock": _written_in(r"[A-Ca-c,>→-]+"),
    "rubiks_cube": _written_in(r"[A-Za-z]w?'?\d?"),
    "rush_hour": _moves_of_cars,
    "simple_integration": _integral,
    "sokoban": _steps,
    "spell_backward": _same,
    "spiral_matrix": _exactly,
    "string_insertion": _exactly,
    "survo": _written_in(r"-?\d+"),
    "time_intervals": _alike,
    "word_ladder": _each_once,
    "word_sorting": _same,
}
"""Rules by the name of the generator."""
