"""What a recording holds: questions with their splits, and what workers once answered to each, with verdicts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from podium.types import Price, Value, estimate_tokens

if TYPE_CHECKING:
    from podium.trace import Span


@dataclass(frozen=True, slots=True)
class Response:
    """What one worker answered to a question, once."""

    worker: str
    sample: int
    """Which of the worker's responses to the question it is; in a file they are counted from 0."""
    text: str
    answer: str | None = None
    """As the source found it in the text; None: it found none."""
    score: float | None = None
    """The source's verdict in [0, 1]; None: not judged."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """None: the source does not know."""
    estimated: bool = False
    """Whether tokens were counted by the text's length (four characters a token) and not by the provider."""
    seconds: float | None = None

    @classmethod
    def of_text(
        cls, worker: str, text: str, *, sample: int = 0, answer: str | None, score: float
    ) -> Response:
        """One of which the text and a verdict are known, and its tokens by its length alone."""
        return cls(worker, sample, text, answer, score, output_tokens=estimate_tokens(text), estimated=True)

    @property
    def correct(self) -> bool:
        """Whether the answer is right, as accuracy counts it."""
        return self.score is not None and self.score >= 0.999


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A question without its responses."""

    id: str
    text: str
    gold: str | None = None
    family: str | None = None
    """The kind of task it is, for reports and for baselines that use it; never shown to a Conductor."""
    split: str | None = None


class RecordedWorker(Value):
    """A worker whose responses are kept, with its figures."""

    name: str
    description: str = ""
    price: Price = Price()
    simulated: bool = False
    """Whether it was a simulation: then figures over its responses are a simulation's too."""
    responses: int = 0
    judged: int = 0
    accuracy: float | None = None
    """Share of right answers among the judged."""
    published: float | None = None
    """The accuracy that the source itself reports, over all its questions."""
    measured: float | None = None
    """The same figure from the rows that were read, before any was left out: to be compared with `published`."""


class Header(Value):
    """The header of a recording, its JSON file."""

    format: Literal[1] = 1
    name: str
    source: str = ""
    """Where the responses come from, with the version."""
    licence: str = ""
    workers: tuple[RecordedWorker, ...]
    questions: int
    responses: int
    splits: dict[str, int] = Field(default_factory=dict)
    """Questions of each split."""
    left_out: tuple[str, ...] = ()
    """What the source holds and this file does not, a sentence each."""
    sha256: str
    """Of the file of rows."""


def was_simulated(span: Span) -> bool:
    """Whether a simulation answered the step, or had a part in the answer of the team that did."""
    if span.nested is not None:
        return any(map(was_simulated, span.nested.spans))
    # Tools claim no time and use no tokens; cached and recorded answers have the time that they once took.
    claimed = span.simulated_s is not None and span.usage.tokens > 0
    return claimed and span.recorded is None and not span.cached


SPLITS = ("train", "validation", "test")
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""What sources call the splits, in lower case."""


def split_by_hash(question_id: str) -> str:
    """The split of a question whose source has none: 70, 15 and 15 % by a hash of its id."""
    place = int.from_bytes(hashlib.sha256(f"split/{question_id}".encode()).digest()[:4], "big") / 2**32
    return SPLITS[0] if place < 0.7 else SPLITS[1] if place < 0.85 else SPLITS[2]
