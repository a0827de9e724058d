"""`calculator`: a tool that computes the arithmetic in its subtask, or in the latest final answer that it sees.

The tool is exact, deterministic and free. It computes formulas and rounds as the text requests, but understands no
other words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from itertools import islice

from podium.text.answer import final_answer
from podium.trace import Reply
from podium.workers import tool
from podium.workers.arithmetic import compute, find_expressions, format_number
from podium.workers.base import TOOL, Request, Worker
from podium.workers.spec import CalculatorSpec

NO_EXPRESSION = tool.no_result(
    "neither the subtask nor a final answer that is shown holds a formula of numbers"
)
_MAX_EXPRESSIONS = 10
"""The most expressions of one text that are computed."""
_NUMBER_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBER = rf"\b(\d{{1,3}}|{'|'.join(_NUMBER_WORDS)})"
_FIGURES_ASKED = re.compile(rf"{_NUMBER}[ \t]+sig(?:nificant|\.)?[ \t]+(?:digit|fig)", re.IGNORECASE)
_DECIMALS_ASKED = re.compile(rf"{_NUMBER}[ \t]+decimal(?:[ \t]+(?:place|digit)|s\b)", re.IGNORECASE)
_SCIENTIFIC = re.compile(r"\bscientific notation\b", re.IGNORECASE)
_MAX_FIGURES = 300
"""The most significant figures or decimals of a value."""
_DEFAULT_FIGURES = 12
"""The number of figures in scientific notation, if the text does not name one."""
_WIDE = Context(prec=10_000)


class CalculatorWorker(Worker):
    """Computes every expression that it finds. The value of the last expression is the answer."""

    traits = TOOL

    def __init__(self, spec: CalculatorSpec | None = None) -> None:
        spec = spec or CalculatorSpec(name="calculator", skills=("arithmetic",))
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback

    async def answer(self, request: Request) -> Reply:
        """The value of each expression, and the answer. If there is no expression, a sentence that says so.

        Raises:
            WorkerError: of kind "missing" if there is no expression and a step failed whose response the tool should
                see.
        """
        subtask, *others = tool.searched_texts(request)
        for text in (subtask, *(final_answer(other) or "" for other in others)):
            if texts := list(islice(find_expressions(text), _MAX_EXPRESSIONS)):
                return tool.free_reply(_compute_all(texts, requested_rounding(text)))
        return tool.no_input_reply(request, NO_EXPRESSION)


def _compute_all(texts: list[str], rounding: AnswerRounding) -> str:
    lines: list[str] = []
    faults: list[str] = []
    answer: str | None = None
    for expression in texts:
        try:
            value = compute(expression)
        except ValueError as fault:
            faults.append(f"{expression} has no value here, for {fault}")
        else:
            if "0x" in expression.lower() and value.denominator == 1:
                answer = hex(value.numerator)
            else:
                answer = rounding.write(value) if rounding else format_number(value)
            lines.append(f"{expression} = {answer}")
    if answer is None:
        return tool.no_result("; ".join(faults))
    return "\n".join([*lines, *(f"{fault}." for fault in faults), tool.as_final_answer(answer)])


@dataclass(frozen=True, slots=True)
class AnswerRounding:
    """How a text wants its answer written. Halves are rounded away from zero, as schools teach."""

    figures: int | None = None
    """How many significant figures are asked for."""
    decimals: int | None = None
    """How many decimals are asked for. `figures` wins over `decimals`."""
    scientific: bool = False
    """Whether the answer is written in scientific notation, such as 1.23e+4."""

    def __bool__(self) -> bool:
        """Whether the text asks for any rounding or notation."""
        return self != AnswerRounding()

    def write(self, value: Fraction) -> str:
        """Write the value in this form. Zeros at the end are kept only in scientific notation."""
        if self.scientific:
            figures = self.figures or _DEFAULT_FIGURES
            return f"{_to_figures(value, figures):.{figures - 1}e}"
        rounded = (
            _to_decimals(value, self.decimals or 0)
            if self.figures is None
            else _to_figures(value, self.figures)
        )
        plain = f"{rounded:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain


def requested_rounding(text: str) -> AnswerRounding:
    """The rounding that a text asks for. If it asks for several of one sort, the last counts."""
    figures = _last_number(_FIGURES_ASKED, text)
    return AnswerRounding(
        None if figures is None else max(1, figures),
        _last_number(_DECIMALS_ASKED, text),
        _SCIENTIFIC.search(text) is not None,
    )


def _last_number(pattern: re.Pattern[str], text: str) -> int | None:
    figures = pattern.findall(text)
    if not figures:
        return None
    return min(
        _MAX_FIGURES, int(figures[-1]) if figures[-1].isdigit() else _NUMBER_WORDS.index(figures[-1].lower())
    )


def _to_figures(value: Fraction, figures: int) -> Decimal:
    if not value:  # Decimal would write a quotient of 0 as 0.00e+2.
        return Decimal(0).scaleb(1 - figures)
    context = Context(prec=figures, rounding=ROUND_HALF_UP)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _to_decimals(value: Fraction, decimals: int) -> Decimal:
    scaled = abs(value) * 10**decimals
    whole = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    return Decimal(-whole if value < 0 else whole).scaleb(-decimals, _WIDE)
