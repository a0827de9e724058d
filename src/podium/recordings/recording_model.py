"""What a recording is: questions with their splits, the scored responses of workers to each, and the files and columns
that hold them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from podium.errors import ConfigError
from podium.types import FrozenModel, Price, estimate_tokens

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ShownContext:
    """What a worker was given besides the question: its subtask, and the other answers that it saw.

    A response to such a context is a conditioned response. The style and the fences of the messages are no part of it,
    and neither are the positions of steps or the white space around a text.
    """

    subtask: str
    earlier: tuple[tuple[str, str], ...] = ()
    """The subtask and the response of each earlier step that it saw, in the order shown."""
    previous: str | None = None
    """The final response of the round before, if it saw that."""

    @cached_property
    def document(self) -> str:
        """The context as JSON: equal contexts have equal texts."""
        shown: dict[str, object] = {"subtask": self.subtask.strip()}
        if self.earlier:
            shown["earlier"] = [[subtask.strip(), response.strip()] for subtask, response in self.earlier]
        if self.previous is not None:
            shown["previous"] = self.previous.strip()
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def key(self) -> str:
        """16 hex digits of the SHA-256 of `document`. With question and worker it finds a conditioned response."""
        return hashlib.sha256(self.document.encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class RecordedResponse:
    worker: str
    sample: int
    """The number of this response among the worker's responses to the question; in a file they begin at 0."""
    text: str
    answer: str | None = None
    """The answer that the source found in the text. None if it found none."""
    score: float | None = None
    """The source's score in [0, 1]. None if the response was not graded."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Tokens of the response. None if the source does not say."""
    estimated: bool = False
    """Whether the number of tokens is an estimate from the text's length (four characters a token)."""
    seconds: float | None = None

    @classmethod
    def from_text(
        cls, worker: str, text: str, *, sample: int = 0, answer: str | None, score: float
    ) -> RecordedResponse:
        """A response with a text and a score, whose tokens are estimated from the text's length."""
        return cls(worker, sample, text, answer, score, output_tokens=estimate_tokens(text), estimated=True)

    @property
    def correct(self) -> bool:
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


class RecordedWorker(FrozenModel):
    """A worker of the recording, with its accuracy on the bare question."""

    name: str
    description: str = ""
    price: Price = Price()
    responses: int = 0
    judged: int = 0
    accuracy: float | None = None
    """The share of right answers among those with a score."""
    published: float | None = None
    """The accuracy that the source publishes, over all of its questions."""
    measured: float | None = None
    """The accuracy in all rows that were read, before any was left out, to compare with `published`."""


class RecordingHeader(FrozenModel):
    """The header of a recording, which is its JSON file."""

    name: str
    source: str = ""
    """Where the responses come from, with the version."""
    licence: str = ""
    workers: tuple[RecordedWorker, ...]
    questions: int
    responses: int
    splits: dict[str, int] = Field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """What the importer left out of the source, one sentence for each reason."""
    conditioned: dict[str, int] = Field(default_factory=dict)
    """How many of the recording's responses are conditioned, for each worker."""
    sha256: str


def reference(
    recording: str, question_id: str, response: RecordedResponse, seen: ShownContext | None = None
) -> str:
    """How a trace names a recorded response: recording#question/worker/sample, and @key if it is conditioned."""
    condition = "" if seen is None else f"@{seen.key}"
    return f"{recording}#{question_id}/{response.worker}/{response.sample}{condition}"


def names_conditioned(reference: str) -> bool:
    """Whether a reference names a conditioned response."""
    return "@" in reference.rpartition("/")[2]


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


def hashed_id(*parts: str) -> str:
    """An id of 16 hex digits that depends only on these texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def split_by_hash(question_id: str) -> str:
    """The split of a question whose source has none: 70, 15 and 15 % by a hash of its id."""
    uniform = int.from_bytes(hashlib.sha256(f"split/{question_id}".encode()).digest()[:4], "big") / 2**32
    return SPLITS[0] if uniform < 0.7 else SPLITS[1] if uniform < 0.85 else SPLITS[2]


RESPONSE_COLUMNS = (
    "worker", "sample", "response", "answer", "score", "input_tokens", "output_tokens", "estimated", "seconds",
)  # fmt: skip
"""The columns of a `RecordedResponse`, in the order of its fields."""
COLUMNS = ("question_id", "question", "gold", "family", "split", *RESPONSE_COLUMNS, "seen", "shown")
"""The columns of the parquet file, which has one row for each response. Rows of one question follow each other. The
last two are the key and the document of the `ShownContext`; both are null in the rows of bare questions."""


def schema() -> pa.Schema:
    """Names and types of the columns, in order."""
    import pyarrow as pa  # noqa: PLC0415 - an optional extra

    types = {
        "sample": pa.int32(),
        "score": pa.float32(),
        "input_tokens": pa.int32(),
        "output_tokens": pa.int32(),
        "estimated": pa.bool_(),
        "seconds": pa.float32(),
    }
    return pa.schema([(name, types.get(name, pa.string())) for name in COLUMNS])


def require_pyarrow() -> None:
    """`ConfigError` if pyarrow is not installed. Asked before anything is paid that only pyarrow can write."""
    if find_spec("pyarrow") is None:
        raise ConfigError(
            "Recordings need pyarrow, which is not installed: pip install 'podium-conductor[recordings]'."
        )


def header_path(path: Path) -> Path:
    """Where the header of the recording at `path` is."""
    return path.with_suffix(".json")


def unfinished_path(recording: Path) -> Path:
    """The folder that keeps the answers of a recording until it is finished."""
    return recording.with_suffix(".partial")
