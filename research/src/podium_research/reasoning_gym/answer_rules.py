"""Rules that an answer must pass before the library's verifier judges it, where the verifier is too lenient.

Some verifiers of the library give their whole score to an answer that names several values, also wrong ones beside the
right one, to `NaN`, or to any text at all. A few verifiers evaluate answers as Python. Each rule says for an answer and
its question whether the verifier may judge it. A rule never makes an answer right. A generator without a rule needs
none: its verifier is strict enough. Seen in reasoning-gym 0.1.25.
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
"""Takes an answer and the library's entry. If it raises, the answer is refused."""

_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?")
_PROBABILITY = re.compile(r"\d{0,9}\.?\d{1,30}(?:[eE]-?\d{1,2})?|\d{1,15}/\d{1,15}")
_SUM = re.compile(r"[\d\s()+\-*/]+")
_TOKEN = re.compile(r"(?<![\w.])\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?(?![\w.])|([A-Za-z_]\w*)|[-+*/^(),]|\s+")
_FUNCTION = re.compile(r"Abs|E|exp|ln|log|pi|sqrt|a?(?:sin|cos|tan)h?|cot|csc|sec")
_FILLERS = frozenset({"a", "an", "and", "is"})


def passes_rules(generator: str, answer: str, entry: Mapping[str, Any]) -> bool:
    """Whether the verifier of a generator may grade an answer; raises whatever a parser raises."""
    rule = _RULES.get(generator)
    return rule is None or rule(answer, entry)


def _same(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer, but for case and space."""
    return _squeezed(answer) == _squeezed(entry["answer"])


def _exactly(answer: str, entry: Mapping[str, Any]) -> bool:
    """Exactly the gold answer: the verifier would evaluate any other text as Python, for a part of the score."""
    return bool(answer == entry["answer"].strip())


def _same_json(answer: str, entry: Mapping[str, Any]) -> bool:
    """JSON equal to the gold answer: the verifier would also accept a larger grid that begins with it."""
    return bool(json.loads(answer) == json.loads(entry["answer"]))


def _same_words(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's words, in any order: an answer may not call somebody both knight and knave."""
    return _word_counts(answer) == _word_counts(entry["answer"])


def _same_numbers(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's numbers and no others, whatever stands between them."""
    return _numbers(answer) == _numbers(entry["answer"])


def _alike(answer: str, entry: Mapping[str, Any]) -> bool:
    """As many numbers as in the gold answer, and no words that it lacks: the verifier would judge the first of several
    values."""
    gold = entry["answer"]
    return len(_numbers(answer)) == len(_numbers(gold)) and _stems(answer) <= _stems(gold)


def _fraction(answer: str, entry: Mapping[str, Any]) -> bool:
    """The gold answer's two numbers, and no words except LaTeX's `frac` and `dfrac`."""
    return _same_numbers(answer, entry) and _stems(answer) <= {"frac", "dfrac"}


def _each_once(answer: str, entry: Mapping[str, Any]) -> bool:
    """A word ladder in which no word occurs twice: the verifier would accept one that goes in circles."""
    rungs = _squeezed(answer).split(",")
    return len(rungs) == len(set(rungs))


def _as_many_letters(answer: str, entry: Mapping[str, Any]) -> bool:
    """As many assignments as in the gold answer: of several digits for a letter, the verifier would use the last."""
    return answer.count("=") == str(entry["answer"]).count("=")


def _finite(answer: str, entry: Mapping[str, Any]) -> bool:
    """Without `nan` and `inf`: the verifier would give `nan` the whole score."""
    return not re.search("nan|inf", answer, re.IGNORECASE)


def _probable(answer: str, entry: Mapping[str, Any]) -> bool:
    """Within 1 % of the gold answer: the verifier gives `0` the whole score where `0.25` is right, since `0.25` begins
    with it."""
    return bool(_PROBABILITY.fullmatch(answer)) and math.isclose(
        float(Fraction(answer)), float(entry["answer"]), rel_tol=0.01
    )


def _no_key_twice(answer: str, entry: Mapping[str, Any]) -> bool:
    """Any text; but in JSON no key may occur twice. If one does, `_unrepeated` raises, and the answer is refused."""
    try:
        json.loads(answer, object_pairs_hook=_unrepeated)
    except json.JSONDecodeError:
        return True
    return True


def _sum(answer: str, entry: Mapping[str, Any]) -> bool:
    """Only numbers, brackets and the four operators: the verifier evaluates the answer as Python."""
    return bool(_SUM.fullmatch(answer)) and "**" not in answer and "//" not in answer


def _sum_to_24(answer: str, entry: Mapping[str, Any]) -> bool:
    """A sum of the question's own numbers whose value is 24: the verifier checks neither."""
    from sympy import parse_expr  # noqa: PLC0415 - comes with the library

    if not _sum(answer, entry):
        return False
    used = sorted(int(number) for number in re.findall(r"\d+", answer))
    return used == sorted(entry["metadata"]["numbers"]) and bool(parse_expr(answer) == 24)


def _integral(answer: str, entry: Mapping[str, Any]) -> bool:
    """A formula of the variable, C and plain functions. `Integral(...)` of the question is refused: the verifier would
    accept it, since its derivative is right."""
    functions = _names(answer) - {entry["metadata"]["variable"], "C"}
    return all(map(_FUNCTION.fullmatch, functions))


def _polynomial(answer: str, entry: Mapping[str, Any]) -> bool:
    """A formula of the variables. `expand(...)` of the question is refused."""
    return _names(answer) <= set(entry["metadata"]["variables"])


def _names(formula: str) -> set[str]:
    """The names in a formula. It will be evaluated as Python, so this raises if the formula has anything but names,
    numbers and operators."""
    if _TOKEN.sub("", formula):
        raise ValueError(f"{formula!r} is no formula")
    return {match[1] for match in _TOKEN.finditer(formula) if match[1]}


def _written_in(pattern: str) -> Rule:
    """Makes a rule: every word of the answer matches `pattern`, so that the letters of prose do not count as moves."""
    kind = re.compile(pattern)
    return lambda answer, entry: all(map(kind.fullmatch, answer.split()))


def _steps(answer: str, entry: Mapping[str, Any]) -> bool:
    """Moves in one line, or single moves with spaces, commas or line breaks between them. Several lines of moves are
    refused, as several solutions."""
    return bool(re.fullmatch(r"[DLRU ]+|[DLRU](?:[\s,]+[DLRU])*", answer))


def _solution_of_queens(answer: str, entry: Mapping[str, Any]) -> bool:
    """Exactly a right board: the verifier would evaluate any other text as Python, for a part of the score."""
    return bool(answer in entry["metadata"]["valid_answers"])


def _moves_of_cars(answer: str, entry: Mapping[str, Any]) -> bool:
    """Only possible moves: the verifier skips the others, so an answer could try all moves."""
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
    """Only actions that change something: the verifier skips the others, so an answer could try all actions."""
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


def _word_counts(text: str) -> Counter[str]:
    return Counter(word for word in re.findall(r"\w+", text.casefold()) if word not in _FILLERS)


def _stems(text: str) -> set[str]:
    """The words of a text, without a final s. Single letters are left out: they are units or names."""
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
    "codeio": _no_key_twice,
    "coin_flip": _probable,
    "complex_arithmetic": _finite,
    "countdown": _sum,
    "cryptarithm": _as_many_letters,
    "figlet_font": _same,
    "fraction_simplification": _fraction,
    "game_of_life": _same_json,
    "game_of_life_halting": _same,
    "graph_color": _no_key_twice,
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
