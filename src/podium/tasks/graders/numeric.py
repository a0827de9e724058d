"""The grader of numbers: within a tolerance, however they are written."""

from __future__ import annotations

import math
import re
from typing import Literal

from pydantic import Field

from podium.tasks.graders.base import PureGrader
from podium.tasks.graders.extraction import Place, find
from podium.tasks.task import Grade

_NUMBER = re.compile(r"[-+−]?(?:\d{1,3}(?:[,\s]\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")
_QUOTES = " \t\n*`\"'"
_EQUATION = re.compile(r"^(?!.*(?:\bor\b|\band\b|[;|]|,\s)).*=\s*")
"""All before the last equals sign, where there is one result and not several."""
_CURRENCY = re.compile(r"^([-+−]?)(?:\\?\$|[€£¥])\s*")
_UNIT = re.compile(r"(?<=\d)(?:\s*\\?%|\s+[A-Za-z°][A-Za-z°²³/.]+(?:\s[A-Za-z°²³/.]+){0,3})$")
"""A per cent sign, or one to four words behind the number."""
_NO_UNIT = re.compile(
    r"\b(?:and|or|to|than|plus|minus|times|over|less|more|half|quarters?|thirds?|dozens?|"
    r"(?:hundred|thousand|(?:m|b|tr)illion)s?)\b",
    re.IGNORECASE,
)
"""Words behind a number that change it."""
_MOST = 100
"""Characters of an answer, at most: nobody needs more for a number, and its cost is bounded."""


class Numeric(PureGrader):
    """1 when the answer is one number, and close enough to the gold one.

    `1,234.50`, `$12`, `-3e4`, `45 %`, `3 apples` and `x = 3` are; `3 or 4`, `about 3`, `3 dozen` and `1/2` are not.
    """

    kind: Literal["numeric"] = "numeric"
    answer: Place = "final"
    """Where the answer stands in the response."""
    absolute: float = Field(default=1e-9, ge=0)
    """How far it may be off."""
    relative: float = Field(default=0.0, ge=0)
    """The same as a share of the gold answer; the larger of both holds."""

    def complaint(self, gold: str) -> str | None:
        return None if _number(gold) is not None else f"the gold answer {gold!r} is no number"

    def judge(self, response: str, gold: str) -> Grade:
        found = find(response, self.answer)
        if found is None:
            return Grade(0.0)
        given, wanted = _number(found), _number(gold)
        if given is None or wanted is None:
            return Grade(0.0, found)
        near = math.isclose(
            given, wanted, rel_tol=0.0, abs_tol=max(self.absolute, self.relative * abs(wanted))
        )
        return Grade(float(near), found)


def _number(text: str) -> float | None:
    """The number that a text is, apart from quotes, a currency before it and a unit behind; None: it is none."""
    dressed = text.strip(_QUOTES).rstrip(".,;:" + _QUOTES)
    if len(dressed) > _MOST:
        return None
    bare = _CURRENCY.sub(r"\1", _EQUATION.sub("", dressed))
    unit = _UNIT.search(bare)
    if unit and not _NO_UNIT.search(unit[0]):
        bare = bare[: unit.start()]
    if not any(c.isdigit() for c in bare) or not _NUMBER.fullmatch(bare):
        return None
    value = float(re.sub(r"[,\s]", "", bare).replace("−", "-"))
    return value if math.isfinite(value) else None
