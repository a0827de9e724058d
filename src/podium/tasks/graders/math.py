"""The grader of mathematics: numbers, formulas, sets, intervals, equations and matrices, however they are written.

The statement is found (`statement`), its mathematics is taken (`expression`), and both sides are compared by
Math-Verify in a process of its own (`calculators`). Numbers, equal texts and words need none.

Not accepted: several values where one is asked for, joined in a list, by "or" or by "maybe"; a value in words; a number
that is rounded further than `decimals`. Accepted, whatever the question asked: a value that is not simplified, a list
in any order, units left out or added, `5 %` for 5 and for 0.05.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pydantic import Field

from podium.errors import GraderError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.calculators import Calculators
from podium.tasks.graders.expression import Expression, expression, folded
from podium.tasks.graders.extraction import Place, find
from podium.tasks.task import Grade

_PLAIN = re.compile(r"[-+]?\d{1,50}(?:\.\d{1,50})?")
_MOST = 2000
"""Characters of an answer that is compared; a longer one is right only if it is the gold one's text."""
_DEEPEST = 20
"""Brackets within brackets: the parser's time doubles with each."""
_FIGURES = 6
"""That a small gold answer is compared to."""


class Math(GraderSettings):
    """1 when the response's mathematics has the value of the gold answer.

    An answer that cannot be compared within the limit is not right. A gold answer that cannot be compared with itself
    within the limit is the grader's fault, and a `GraderError`.
    """

    kind: Literal["math"] = "math"
    answer: Place = "stated"
    """Where the answer stands in the response."""
    decimals: int = Field(default=6, ge=0, le=50)
    """To which decimal numbers with a point are compared."""
    strict: bool = True
    """Whether the names of variables count: f(x) is not f(y)."""
    relations_as_sets: bool = False
    """Whether `1 < x < 2` is right where the gold answer is the interval; the other way round it always is."""
    limit_s: float = Field(default=3.0, gt=0, le=600)
    """Seconds of processor time for one comparison."""

    def complaint(self, gold: str) -> str | None:
        return None if _said(gold) else f"the gold answer {gold[:60]!r} states no value"

    async def __call__(self, response: str, gold: str) -> Grade:
        wanted = _said(gold)
        if wanted is None:
            raise GraderError(f"the gold answer {gold[:60]!r} states no value; mend it.")
        found = find(response, self.answer)
        given = expression(found) if found else None
        if given is None:
            return Grade(0.0, found)
        if wanted == given:
            return Grade(1.0, given.text)
        return Grade(float(await self._same(wanted, given)), given.text)

    async def _same(self, gold: Expression, answer: Expression) -> bool:
        if gold.words or answer.words:
            return folded(gold.text) == folded(answer.text)
        if not _comparable(answer.text):
            return False
        if _PLAIN.fullmatch(gold.text) and _PLAIN.fullmatch(answer.text):
            return _near(Fraction(gold.text), Fraction(answer.text), self.decimals)
        verdict = await self._ask(gold.text, answer.without_unit(gold).text)
        if verdict is None and not await self._ask(gold.text, gold.text):
            raise GraderError(
                f"the gold answer {gold.text[:60]!r} cannot be compared within {self.limit_s:g} s; mend it."
            )
        return bool(verdict)

    async def _ask(self, gold: str, answer: str) -> bool | None:
        question = {
            "gold": gold,
            "answer": answer,
            "decimals": self.decimals,
            "strict": self.strict,
            "relations_as_sets": self.relations_as_sets,
        }
        return await self._calculators.ask(question, self.limit_s)

    @cached_property
    def _calculators(self) -> Calculators:
        return Calculators()


def _said(gold: str) -> Expression | None:
    return expression(find(gold, "stated") or "")


def _near(gold: Fraction, answer: Fraction, decimals: int) -> bool:
    """Whether two numbers agree to so many decimals; to more where the gold one would be rounded to nothing."""
    half = Fraction(1, 2 * 10**decimals)
    return abs(gold - answer) <= (half if abs(gold) > half else abs(gold) / 10**_FIGURES)


def _comparable(text: str) -> bool:
    """Whether it is neither longer nor deeper than any answer."""
    depth = deepest = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    return len(text) <= _MOST and deepest <= _DEEPEST
