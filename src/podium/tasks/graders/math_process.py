"""Compares mathematics in a process of its own; it imports nothing of Podium.

It prints "ready". Then it reads lines, each a JSON object with a gold answer, an answer and settings, and replies to
each whether the two are equal. Math-Verify does the work (huggingface/Math-Verify, Apache-2.0), with SymPy below it.
Neither bounds its time or memory, so this process does. `math_verifier` starts it, and replaces it when it dies.

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
"""Significant figures to which a small gold answer is compared."""
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
    """Compare within the limits; None: they were exceeded, or the comparison failed."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    last = math.ceil(used.ru_utime + used.ru_stime + seconds) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (last, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    try:
        # The signal repeats every second, for code that catches the first exception.
        signal.setitimer(signal.ITIMER_PROF, seconds, 1)
        return equal(**question)
    except (
        _OverError,
        Exception,
    ):  # SymPy raises many kinds of exceptions for mathematics that makes no sense
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def equal(gold: str, answer: str, *, decimals: int, strict: bool, relations_as_sets: bool) -> bool:
    """Whether an answer equals the gold answer, both in LaTeX without dollar signs. Not bounded in time or memory."""
    from math_verify import verify  # noqa: PLC0415

    bases = _BASE.search(gold), _BASE.search(answer)
    if bases[0] and bases[1] and bases[0][1] != bases[1][1]:
        return False
    wanted, given = _parsed(_pointed(gold, answer)), _parsed(_pointed(answer, gold))
    if isinstance(wanted, str) or isinstance(given, str):
        return bool(wanted == given)
    bound = _bound(wanted), _bound(given)
    if bound[0] != wanted and bound[1] != given:
        wanted, given = bound
    same = verify(
        wanted,
        given,
        float_rounding=_rounding(wanted, decimals),
        strict=strict,
        allow_set_relation_comp=relations_as_sets,
        timeout_seconds=None,
    )
    return bool(same) and not _both_empty(wanted, given)


def _pointed(text: str, other: str) -> str:
    """The text with a decimal point for a decimal comma, if the other has a point; else a comma separates numbers."""
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) and _DECIMAL.fullmatch(other) else text


def _parsed(text: str) -> Any:
    """The text as a SymPy object, or the text itself if it cannot be parsed."""
    from latex2sympy2_extended import NormalizationConfig  # noqa: PLC0415
    from math_verify import LatexExtractionConfig, parse  # noqa: PLC0415

    # To remove units would also remove variables: 2t would become 2.
    form = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="none", equations=False
    )
    found = parse(
        f"${text}$",
        [LatexExtractionConfig(normalization_config=form, boxed_match_priority=-1)],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        parsing_timeout=None,
    )
    return found[0] if found else text


def _bound(value: Any) -> Any:
    """Rename the argument of a defined function, so that f(n) = 1 equals f(x) = 1."""
    from sympy import Eq, FiniteSet, Symbol  # noqa: PLC0415
    from sympy.core.function import AppliedUndef  # noqa: PLC0415

    if isinstance(value, FiniteSet):
        return value.func(*map(_bound, value.args))
    if isinstance(value, Eq) and isinstance(value.lhs, AppliedUndef) and len(value.lhs.args) == 1:
        (argument,) = value.lhs.args
        return value.subs(argument, Symbol("argument", real=True)) if argument.is_Symbol else value
    return value


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
