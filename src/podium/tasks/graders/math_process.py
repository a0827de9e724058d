"""Compares mathematics in a process of its own; it imports nothing of Podium.

It prints "ready". Then it reads lines, each a JSON object with a gold answer, an answer and settings, and replies to
each whether the two are equal. Math-Verify does the work (huggingface/Math-Verify, Apache-2.0), with SymPy below it.
Neither bounds its time or memory, so this process does. `math_graders` starts it, and replaces it when it dies.

After `seconds` of CPU time an exception ends a comparison. If C code delays the exception, the kernel kills the process
two seconds later. Memory beyond `_MEMORY` is refused.
"""

from __future__ import annotations

import json
import logging
import math
import re
import resource
import signal
import sys
from types import FrameType
from typing import Any

_MEMORY = 2 << 30
"""Bytes."""
_FIGURES = 6
_POINTS = 4
"""Points at which two expressions must be real, to be taken for the same function."""
_BASE = re.compile(r"\d_\{?(\d+)\}?\s*$")
_DECIMAL = re.compile(r"[-+]?\d*\.\d+")
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d+,\d{1,2}|\d{4,},\d+|0,\d+)")


class _OverError(BaseException):
    """The time is up. It is no `Exception`, so that the libraries do not catch it."""


def main() -> None:
    """Answer each line of the input until it ends."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGPROF, _stop)
    import math_verify  # noqa: F401, PLC0415 - the parent waits for "ready", so that no question pays for the import

    replies, sys.stdout = sys.stdout, sys.stderr  # what a library prints must not look like a reply
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(_within(question.pop("seconds"), question)), file=replies, flush=True)


def _stop(signum: int, frame: FrameType | None) -> None:
    raise _OverError


def _within(seconds: float, question: dict[str, Any]) -> bool | None:
    """Compare within the limits. Returns None if they were exceeded, or the comparison failed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = math.ceil(used.ru_utime + used.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (last, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    try:
        # The signal repeats every second, for code that catches the first exception.
        signal.setitimer(signal.ITIMER_PROF, seconds, 1)
        return equal(**question)
    except (_OverError, Exception):  # SymPy raises many kinds for mathematics that makes no sense.
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def equal(gold: str, answer: str, *, decimals: int, strict: bool, relations_as_sets: bool) -> bool:
    """Whether an answer equals the gold answer, both in LaTeX without dollar signs. Not bounded in time or memory."""
    from math_verify import verify  # noqa: PLC0415

    gold, answer = _as_column(gold, answer), _as_column(answer, gold)
    bases = _BASE.search(gold), _BASE.search(answer)
    if bases[0] and bases[1] and bases[0][1] != bases[1][1]:
        return False
    gold_value, answer_value = _parse(_with_point(gold, answer)), _parse(_with_point(answer, gold))
    if isinstance(gold_value, str) or isinstance(answer_value, str):
        return bool(gold_value == answer_value)
    renamed = _rename_argument(gold_value), _rename_argument(answer_value)
    if renamed[0] != gold_value and renamed[1] != answer_value:
        gold_value, answer_value = renamed
    gold_value, answer_value = _with_imaginary_unit(gold_value, answer_value)
    numbers = _numbers(gold_value, answer_value)
    if numbers and abs(numbers[0]) < 10.0**-decimals / 2:
        # `verify` computes in floats, in which both may be 0.
        return bool(abs(numbers[0] - numbers[1]) <= abs(numbers[0]) / 10**_FIGURES)
    same = verify(
        gold_value,
        answer_value,
        float_rounding=_rounding(gold_value, decimals),
        strict=strict,
        allow_set_relation_comp=relations_as_sets,
        timeout_seconds=None,
    )
    if not same:
        return _equal_where_real(gold_value, answer_value)
    if numbers and "%" not in gold + answer and abs(numbers[0] - numbers[1]) > 2 * 10.0**-decimals:
        return False
    return not _both_empty(gold_value, answer_value)


def _with_point(text: str, other: str) -> str:
    """The text with a decimal point for a decimal comma, if the other has a point; else a comma separates numbers."""
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) and _DECIMAL.fullmatch(other) else text


def _as_column(text: str, other: str) -> str:
    """A vector in parentheses as a column, if the other one is a column."""
    vector = re.fullmatch(r"\(([^()\[\]&]*,[^()\[\]&]*)\)", text)
    if not vector or "matrix}" not in other or "&" in other:
        return text
    columns = vector[1].replace(",", r" \\ ")
    return f"\\begin{{pmatrix}}{columns}\\end{{pmatrix}}"


def _parse(text: str) -> Any:
    from latex2sympy2_extended import NormalizationConfig  # noqa: PLC0415
    from math_verify import LatexExtractionConfig, parse  # noqa: PLC0415

    # To remove units would also remove variables: 2t would become 2.
    form = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
    )
    readings = parse(
        f"${text}$",
        [LatexExtractionConfig(normalization_config=form, boxed_match_priority=-1)],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    return readings[0] if readings else text


def _rename_argument(value: Any) -> Any:
    """Rename the argument of a defined function, so that f(n) = 1 equals f(x) = 1."""
    from sympy import Eq, FiniteSet, Symbol  # noqa: PLC0415
    from sympy.core.function import AppliedUndef  # noqa: PLC0415

    if isinstance(value, FiniteSet):
        return value.func(*map(_rename_argument, value.args))
    if isinstance(value, Eq) and isinstance(value.lhs, AppliedUndef) and len(value.lhs.args) == 1:
        (argument,) = value.lhs.args
        return value.subs(argument, Symbol("argument", real=True)) if argument.is_Symbol else value
    return value


def _with_imaginary_unit(gold: Any, answer: Any) -> tuple[Any, Any]:
    """Both values with the imaginary unit for the letter i, if one has a power of e and neither has another letter."""
    from sympy import I, exp  # noqa: PLC0415

    free = {symbol for value in (gold, answer) for symbol in getattr(value, "free_symbols", ())}
    if {symbol.name for symbol in free} != {"i"} or not (gold.has(exp) or answer.has(exp)):
        return gold, answer
    unit = dict.fromkeys(free, I)
    return gold.subs(unit), answer.subs(unit)


def _numbers(gold: Any, answer: Any) -> tuple[Any, Any] | None:
    """Both values in decimals of any size, if both are real numbers and the gold one is not 0."""
    from sympy import Expr, N  # noqa: PLC0415

    if not all(isinstance(value, Expr) and value.is_number for value in (gold, answer)):
        return None
    exact, found = N(gold, 20), N(answer, 20)
    return (exact, found) if exact.is_Float and (found.is_Float or found == 0) and exact != 0 else None


def _equal_where_real(gold: Any, answer: Any) -> bool:
    """Whether two expressions with roots in one variable have the same value wherever either is real. SymPy does not
    know that the variable is real, so to it 1/sqrt(n) is not sqrt(1/n)."""
    from sympy import Expr, N, Pow, Rational  # noqa: PLC0415

    if not (isinstance(gold, Expr) and isinstance(answer, Expr) and gold.free_symbols == answer.free_symbols):
        return False
    if len(gold.free_symbols) != 1 or not (gold + answer).has(Pow):
        return False
    (variable,) = gold.free_symbols
    alike = 0
    for value in (-7, -3, -1, -0.4, 0.3, 0.7, 1.9, 3, 11, 29):
        one, other = (N(side.subs(variable, Rational(str(value))), 20) for side in (gold, answer))
        if one.is_Float != other.is_Float or (one.is_Float and abs(one - other) > abs(one) / 10**12):
            return False
        alike += bool(one.is_Float)
    return alike >= _POINTS


def _rounding(gold: Any, decimals: int) -> int:
    """Decimal places to compare: more if the gold answer would be rounded to 0."""
    size = abs(float(gold)) if getattr(gold, "is_number", False) and gold.is_real else 0.0
    return decimals if size == 0 or round(size, decimals) else _FIGURES - math.floor(math.log10(size))


def _both_empty(gold: Any, answer: Any) -> bool:
    """Whether these are two different equations without solutions, which `verify` considers equal."""
    from sympy import Eq, simplify, solve  # noqa: PLC0415

    if not isinstance(gold, Eq) or not isinstance(answer, Eq) or gold == answer or solve(gold):
        return False
    return not simplify((gold.lhs - gold.rhs) / (answer.lhs - answer.rhs)).is_number


if __name__ == "__main__":
    main()
