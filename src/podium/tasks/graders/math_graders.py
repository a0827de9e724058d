"""Graders of mathematics: `numeric` for one number within a tolerance, `math` for any formula.

`Math` takes the mathematics of the stated answer (`latex`) and compares it with Math-Verify in a process of its own
(`math_process`). Numbers, equal texts and words need no process. Processes are kept, since loading SymPy takes a
second, and end with their event loop. A process that exceeded its limits, died, or was left in the middle of a
comparison is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podium.concurrency.child_process import (
    RESOURCE_LIMIT_STATUSES,
    ChildEndedError,
    ChildPool,
    ChildProcess,
    ChildTimeoutError,
    usable_cores,
)
from podium.concurrency.event_loops import PerLoop
from podium.errors import ConfigError, GraderError
from podium.tasks.graders.base import GraderSettings, PureGrader
from podium.tasks.graders.extraction import AnswerPlace, extract
from podium.tasks.graders.hedges import is_false, lists_values, states_one_answer
from podium.tasks.graders.latex import Expression, expression, normalised_phrase
from podium.tasks.task import Grade
from podium.text.answer import strip_markup
from podium.text.numerals import read_number, without_emphasis


class Numeric(PureGrader):
    """1 when the answer is one number, close enough to the gold one.

    `1,234.50`, `$12`, `-3e4`, `45 %`, `3 apples` and `x = 3` are one number; `3 or 4`, `about 3`, `3 dozen` and `1/2`
    are not. With `sentences` a sentence that ends in one counts, too: `4 boxes of 3 are 12 apples.` is 12.
    """

    kind: Literal["numeric"] = "numeric"
    answer: AnswerPlace = "final"
    """Where the answer stands in the response."""
    absolute: float = Field(default=1e-9, ge=0)
    """The largest absolute difference from the gold number."""
    relative: float = Field(default=0.0, ge=0)
    """The largest difference as a share of the gold number; the larger of the two tolerances counts."""
    sentences: bool = False
    """Whether a number counts that ends a sentence, behind its verb."""

    def gold_problem(self, gold: str) -> str | None:
        is_number = read_number(gold, fractions=False) is not None
        return None if is_number else f"the gold answer {gold!r} is no number"

    def judge(self, response: str, gold: str) -> Grade:
        answer = extract(without_emphasis(response) if self.sentences else response, self.answer)
        if answer is None:
            return Grade(0.0)
        given, wanted = read_number(answer, fractions=False), read_number(gold, fractions=False)
        if given is None and self.sentences and (verbs := [*_VERB.finditer(answer)]):
            given = read_number(strip_markup(answer[verbs[-1].end() :].strip(_MARKUP)), fractions=False)
        hedges = is_false(answer.strip(" $"), answer) or not states_one_answer(answer, gold)
        if given is None or wanted is None or hedges or (lists_values(response) and not lists_values(gold)):
            return Grade(0.0, answer)
        difference = abs(given - wanted)
        near = difference <= self.absolute or (wanted and difference / abs(wanted) <= self.relative)
        return Grade(float(bool(near)), answer)


_VERB = re.compile(
    r"\b(?:is|are|was|were|equals|has|have|had)\b:?|^[^\W\d_]+(?:[ \t][^\W\d_]+){0,3}:", re.IGNORECASE
)
"""A verb before a number, or a label such as `Sum:` or `Total number of apples:`."""
_MARKUP = " \n.!*$\\()[]"
_SET_OPERATOR = re.compile(r"\\(?:cup|cap)\b")
_PLAIN_NUMBER = re.compile(r"[-+]?\d{1,50}(?:\.\d{1,50})?")
_LONGEST_COMPARED = 2000
"""Characters of an answer that Math-Verify compares; a longer one is right only if its text equals the gold text."""
_MAX_BRACKETS = 20
"""The most levels of brackets: each doubles the parser's time."""
_COMPARED_FIGURES = 6
"""Significant figures to which a small gold answer is compared."""


class Math(GraderSettings):
    """1 when the mathematics of the response has the value of the gold answer.

    Accepted: a value that is not simplified, a list in any order, units left out or added, `5 %` for 5 and for 0.05.
    Not accepted: several values for a question with one, joined in a list, by "or" or by "maybe"; a value in words; a
    number that is rounded to fewer places than `decimals`. An answer that cannot be compared within the limit is
    wrong. A gold answer that cannot be compared with itself within the limit is a `GraderError`.
    """

    kind: Literal["math"] = "math"
    answer: AnswerPlace = "stated"
    """Where the answer stands in the response."""
    decimals: int = Field(default=6, ge=0, le=50)
    """Decimal places to which numbers with a point are compared."""
    strict: bool = True
    """Whether the names of variables count: f(x) is not f(y)."""
    relations_as_sets: bool = False
    """Whether `1 < x < 2` is right if the gold answer is an interval; the reverse is always right."""
    limit_s: float = Field(default=3.0, gt=0, le=600)
    """Seconds of processor time for one comparison."""

    def gold_problem(self, gold: str) -> str | None:
        return None if _gold_expression(gold) else f"the gold answer {gold[:60]!r} states no value"

    async def __call__(self, response: str, gold: str) -> Grade:
        wanted = _gold_expression(gold)
        if wanted is None:
            raise GraderError(f"the gold answer {gold[:60]!r} states no value; correct it.")
        answer = extract(response, self.answer)
        given = expression(answer) if answer else None
        if given is None or answer is None:
            return Grade(0.0, answer)
        hedges = not states_one_answer(answer, gold) or is_false(given.text, answer)
        if (answer != gold and hedges) or (lists_values(response) and not lists_values(gold)):
            return Grade(0.0, given.text)
        if wanted == given:
            return Grade(1.0, given.text)
        return Grade(float(await self._same(wanted, given)), given.text)

    async def _same(self, gold: Expression, answer: Expression) -> bool:
        if gold.words or answer.words:
            return normalised_phrase(gold.text) == normalised_phrase(answer.text)
        if not _comparable(answer.text):
            return False
        if _operands(gold.text) == _operands(answer.text):
            return True
        if _PLAIN_NUMBER.fullmatch(gold.text) and _PLAIN_NUMBER.fullmatch(answer.text):
            return _near(Fraction(gold.text), Fraction(answer.text), self.decimals)
        verdict = await self._compare(gold.text, answer.without_unit(gold).text)
        if verdict is None and not await self._compare(gold.text, gold.text):
            raise GraderError(
                f"the gold answer {gold.text[:60]!r} cannot be compared within {self.limit_s:g} s; correct it."
            )
        return bool(verdict)

    async def _compare(self, gold: str, answer: str) -> bool | None:
        question = {
            "gold": gold,
            "answer": answer,
            "decimals": self.decimals,
            "strict": self.strict,
            "relations_as_sets": self.relations_as_sets,
        }
        return await self._verifier.compare(question, self.limit_s)

    @cached_property
    def _verifier(self) -> MathVerifier:
        return MathVerifier()


def _gold_expression(gold: str) -> Expression | None:
    return expression(extract(gold, "stated") or "")


def _near(gold: Fraction, answer: Fraction, decimals: int) -> bool:
    """Whether two numbers agree to this many decimals, or to more if the gold one would be rounded to 0."""
    half = Fraction(1, 2 * 10**decimals)
    return abs(gold - answer) <= (half if abs(gold) > half else abs(gold) / 10**_COMPARED_FIGURES)


def _operands(text: str) -> list[str]:
    """The operator of a union or an intersection, and its parts in order; the text itself if it is neither."""
    marks = set(_SET_OPERATOR.findall(text))
    if len(marks) != 1:
        return [text]
    return [*marks, *sorted(" ".join(part.split()) for part in _SET_OPERATOR.split(text))]


def _comparable(text: str) -> bool:
    depth = deepest = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, depth)
    return len(text) <= _LONGEST_COMPARED and deepest <= _MAX_BRACKETS


_START_S = 120.0
"""Seconds to start: loading takes one or two, and longer on a machine that swaps."""
_STARVED, _STARVED_S = 20.0, 30.0
"""A process hangs if a comparison takes this many times its processor time, plus this many seconds."""
_PROGRAM = str(Path(__file__).with_name("math_process.py"))
"""Run as a file: as a module it would load all of `podium.tasks` first."""


class MathVerifier:
    """Compares mathematics in a free process, or in a new one while there are fewer than cores."""

    def __init__(self) -> None:
        self._pools = PerLoop(_open_pool)

    async def compare(self, question: dict[str, Any], seconds: float) -> bool | None:
        """Whether an answer equals the gold answer, as `math_process.equal` says with the arguments `question`, in so
        many seconds of processor time. None if the limits of time or memory were exceeded.

        Raises:
            ConfigError: Math-Verify is not installed.
            GraderError: no process could be started, or one ended by something else than its limits.
        """
        pool = await self._pools.get()
        line = json.dumps(question | {"seconds": seconds}).encode()
        try:
            verdict: bool | None = json.loads(await pool.ask(line, _STARVED_S + _STARVED * seconds))
        except ChildTimeoutError:
            raise GraderError("a process that compares mathematics hangs; ask again.") from None
        except ChildEndedError as error:
            if error.status in RESOURCE_LIMIT_STATUSES:
                return None
            raise GraderError(f"a process that compares mathematics {error}; ask again.") from None
        return verdict


async def _open_pool() -> AsyncGenerator[ChildPool]:
    pool = ChildPool(_start, usable_cores(), "mathematics")
    try:
        yield pool
    finally:
        pool.close()


def _start() -> ChildProcess:
    if find_spec("math_verify") is None:
        raise ConfigError(
            "comparing mathematics needs Math-Verify; install it: pip install 'podium-conductor[tasks]'."
        )
    child = ChildProcess((_PROGRAM,))
    try:
        child.read_line(_START_S)
    except (ChildEndedError, ChildTimeoutError) as error:
        child.close()
        raise GraderError(
            f"a process that compares mathematics did not start: it {error or 'hangs'}."
        ) from None
    return child
