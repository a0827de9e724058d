"""`calculator`: a tool that computes the arithmetic in its subtask, or in the latest final answer that it is shown.

Exact, deterministic and free. It computes what is written as a formula, and rounds as the text says; it understands
nothing else that is told in words.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from podium.types import Limits, Profile
from podium.workers import tool
from podium.workers.answer import final_answer
from podium.workers.arithmetic import compute, expressions, shown
from podium.workers.base import Reply, Request
from podium.workers.rounding import Rounding, asked_rounding

DESCRIPTION = (
    "A tool: computes exactly the arithmetic that is written as a formula in its subtask, or in the latest final "
    "answer that it is shown. Free."
)
NO_EXPRESSION = tool.no_result(
    "neither the subtask nor a final answer that is shown holds a formula of numbers"
)
_MOST = 10
"""Expressions of one text that are computed."""


class CalculatorWorker:
    """Computes; of several expressions each, and the last that has a value is the answer."""

    identity = None

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
        """What each expression comes to, and the answer; where there is none, a sentence that says so.

        Raises:
            WorkerError: "missing": there is no expression, and responses that it was to see are missing.
        """
        subtask, *others = tool.material(request)
        for text in (subtask, *(final_answer(other) or "" for other in others)):
            if found := list(islice(expressions(text), _MOST)):
                return tool.free(_computed(found, asked_rounding(text)))
        return tool.nothing(request, NO_EXPRESSION)

    async def close(self) -> None:
        """Nothing to give back."""


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
    """As is asked for; hexadecimal where the expression is."""
    if "0x" in expression.lower() and value.denominator == 1:
        return hex(value.numerator)
    return rounding.write(value) if rounding else shown(value)
