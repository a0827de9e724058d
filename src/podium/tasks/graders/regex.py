"""The grader of answers with a form: a pattern that the answer must match, matched within a time limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from podium.errors import ConfigError, GraderError
from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.extraction import Place, find
from podium.tasks.task import Grade

if TYPE_CHECKING:
    from regex import Pattern

LONGEST = 1000
"""Characters of a pattern, at most."""
_SECONDS = 1.0
"""Of processor time that one match may take."""
_SHOWN = 60
"""Characters of a pattern that a message repeats."""
_NONSENSE = "qx7 ☃ 41, (zw)"


class Regex(GraderSettings):
    """1 when the gold answer, a pattern, matches the answer from its first character to its last.

    The answer is what stands at `answer` (with "final", without bold, backticks or dollars round it); a match
    somewhere in it earns nothing. Patterns are those of the `regex` package, which knows all that `re` knows; case
    counts unless the pattern begins with `(?i)`. Not accepted: a pattern that matches anything, or one of over 1,000
    characters. A pattern that takes too long on an answer is its author's fault, not the answer's: a GraderError.
    """

    kind: Literal["regex"] = "regex"
    answer: Place = "final"
    """Where the answer stands in the response."""

    def complaint(self, gold: str) -> str | None:
        if not gold.strip():
            return "the gold answer is empty"
        try:
            if matches(gold, _NONSENSE):
                return f"the gold answer {_short(gold)} is a pattern that matches anything"
        except GraderError as error:
            return f"the gold answer cannot be used: {error}".rstrip(".")
        return None

    async def __call__(self, response: str, gold: str) -> Grade:
        found = find(response, self.answer)
        return Grade(0.0) if found is None else Grade(float(matches(gold, found)), found)


def matches(pattern: str, text: str, *, whole: bool = True) -> bool:
    """Whether a pattern matches a text, or, unless `whole`, something in it.

    Raises:
        GraderError: it is no pattern, or it takes too long.
        ConfigError: the package is missing.
    """
    compiled = _compiled(pattern)
    match = compiled.fullmatch if whole else compiled.search
    try:
        return match(text, timeout=_SECONDS) is not None
    except TimeoutError:
        raise GraderError(
            f"{_short(pattern)} takes more than {_SECONDS:g} s on an answer; write it without repeats in repeats."
        ) from None


def _compiled(pattern: str) -> Pattern[str]:
    try:
        import regex  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise ConfigError(
            "Patterns need the package regex, which is not installed: pip install 'podium-conductor[tasks]'."
        ) from None
    if len(pattern) > LONGEST:
        raise GraderError(
            f"{_short(pattern)} has {len(pattern)} characters; a pattern has at most {LONGEST}."
        )
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        raise GraderError(f"{_short(pattern)} is no pattern: {error}.") from None


def _short(pattern: str) -> str:
    return repr(pattern if len(pattern) <= _SHOWN else f"{pattern[:_SHOWN]}...")
