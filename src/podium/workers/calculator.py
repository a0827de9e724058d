"""`calculator`: a tool that computes the arithmetic in its subtask, or in the latest final answer that it is shown.

It is exact, deterministic and free. It computes formulas, and rounds as the text requests; it understands no other
words.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from podium.types import Limits, Profile
from podium.workers import tool
from podium.workers.answer import final_answer
from podium.workers.arithmetic import compute, expressions, format_number
from podium.workers.base import Reply, Request
from podium.workers.rounding import Rounding, requested_rounding

DESCRIPTION = (
    "A tool: computes exactly the arithmetic that is written as a formula in its subtask, or in the latest final "
    "answer that it is shown. Free."
)
NO_EXPRESSION = tool.no_result(
    "neither the subtask nor a final answer that is shown holds a formula of numbers"
)
_MOST = 10
"""Most expressions of one text that are computed."""


class CalculatorWorker:
    """Computes every expression that it finds; the value of the last one is the answer."""

    identity = None
    unpaid = True

    def __init__(
        self,
        name: str = "calculator",
        *,
        profile: Profile | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
    ) -> None:
        self.profile = profile or Profile(name=name, description=DESCRIPTION, skills=("arithmetic",))
        self.limits = limits or Limits(retries=0)
        self.fallback = fallback

    async def answer(self, request: Request) -> Reply:
        """The value of each expression, and the answer; without an expression, a sentence that says so.

        Raises:
            WorkerError: "missing": there is no expression, and a step failed whose response it should see.
        """
        subtask, *others = tool.material(request)
        for text in (subtask, *(final_answer(other) or "" for other in others)):
            if found := list(islice(expressions(text), _MOST)):
                return tool.free(_computed(found, requested_rounding(text)))
        return tool.nothing(request, NO_EXPRESSION)

    async def close(self) -> None:
        """Nothing to close."""


def _computed(found: list[str], rounding: Rounding) -> str:
    lines: list[str] = []
    faults: list[str] = []
    answer: str | None = None
    for expression in found:
        try:
            value = compute(expression)
        except ValueError as fault:
            faults.append(f"{expression} has no value here, for {fault}")
        else:
            answer = _written(value, expression, rounding)
            lines.append(f"{expression} = {answer}")
    if answer is None:
        return tool.no_result("; ".join(faults))
    return "\n".join([*lines, *(f"{fault}." for fault in faults), tool.stated(answer)])


def _written(value: Fraction, expression: str, rounding: Rounding) -> str:
    """The value, rounded as the text requests; hexadecimal if the expression is."""
    if "0x" in expression.lower() and value.denominator == 1:
        return hex(value.numerator)
    return rounding.write(value) if rounding else format_number(value)
