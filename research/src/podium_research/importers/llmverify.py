"""Imports LLMVerify's verifier data: what verifiers said of candidate solutions, one solution at a time.

The source is its folder `verifier_data`, with a folder of JSON lines for each verifier. A candidate is a response of
its generator to the bare question. A verification is a conditioned response: the verifier saw this one candidate, and
its score says whether its verdict is right. A verification without a verdict is wrong. Source: LLMVerify-Verifier, MIT,
by the authors of arXiv 2509.17995.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from podium.errors import UsageError
from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import (
    RecordedQuestion,
    RecordedResponse,
    ShownContext,
    hashed_id,
    split_by_hash,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.importers.documents import SourceDocument, read_json_lines

VERIFY = "Say whether the answer shown is correct."
"""The subtask by which a step gets a recorded verification. The verifier's own prompt belongs to the verifier."""
_SETTING = "single_verification"
_LABELS = {"1": True, "true": True, "0": False, "false": False}
_VOTES = {"1": True, "2": False}
"""The source writes 1 for a verdict of correct, 2 for incorrect, and another number where it found no verdict."""


class _Row(SourceDocument):
    model: str
    """The generator."""
    dataset_source: str = ""
    response_idx: int = 0
    question: str
    gold_answer: str | None = None
    response: str
    label: Any
    votes: tuple[Any, ...]
    swap_inference1: tuple[str, ...]
    """What the verifier wrote; as many texts as votes."""


_ROW = TypeAdapter(_Row)


def import_llmverify(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the folders of verifiers in `path`. A verifier has the name of its folder, such as Qwen/Qwen3-8B.

    Args:
        report: called with the name of each file before it is read.

    Raises:
        UsageError: there are no files, or one cannot be read.
    """
    import_report = ImportReport(source="LLMVerify-Verifier", licence="MIT")
    right: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    files = sorted(path.rglob("*.jsonl"))
    if not files:
        raise UsageError(f"{path} holds no *.jsonl; give the folder verifier_data of LLMVerify-Verifier.")
    for file in files:
        relative = file.relative_to(path)
        report(str(relative))
        verifier = str(relative.parent).replace("\\", "/").partition(f"/{_SETTING}")[0]
        for row in read_json_lines(file, _ROW):
            question_id = hashed_id(row.question)
            writer.add_question(
                RecordedQuestion(
                    question_id,
                    row.question,
                    row.gold_answer,
                    row.dataset_source,
                    split_by_hash(question_id),
                )
            )
            label = _LABELS.get(_word(row.label))
            score = float(label is True)
            writer.add(
                question_id,
                RecordedResponse.from_text(
                    row.model, row.response, sample=row.response_idx, answer=None, score=score
                ),
            )
            seen = ShownContext(VERIFY, ((ANSWER_WHOLE_QUESTION, row.response),))
            for sample, (text, vote) in enumerate(zip(row.swap_inference1, row.votes, strict=False)):
                agrees = label is not None and _VOTES.get(_word(vote)) == label
                response = RecordedResponse.from_text(
                    verifier, text, sample=sample, answer=None, score=float(agrees)
                )
                if writer.add(question_id, response, seen=seen):
                    verdicts[verifier] += 1
                    right[verifier] += agrees
                else:
                    import_report.left_out[
                        f"verifications of {verifier} of an answer that it saw before"
                    ] += 1
    import_report.measured = {verifier: right[verifier] / count for verifier, count in verdicts.items()}
    return import_report


def _word(value: Any) -> str:
    """A label or a vote as one word: 1.0 is 1."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().casefold()
