"""Imports JudgeBench: pairs of answers of which one is right, and what judges said of them.

The source is its folder `outputs`, one file for each judge. An answer of a pair is a response to the bare question. A
judgment is a conditioned response: the judge saw both answers, in the order of the pair or, the second time, in the
reverse order, and its score says whether it preferred the right one. A judge that gives only a number, such as a reward
model, is left out. Source: ScalerLab/JudgeBench.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import (
    RecordedQuestion,
    RecordedResponse,
    ShownContext,
    hashed_id,
    split_by_hash,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.importers.documents import SourceDocument, list_files, read_json_lines

COMPARE = "Compare the answers shown and say which one is better."
"""The subtask by which a step gets a recorded judgment. The judge's own prompt, in its words, belongs to the judge."""
_NAMED = re.compile(r"judge_name=(?P<judge>[^,]+),judge_model=(?P<model>.+)$")
_REVERSED = {"A>B": "B>A", "B>A": "A>B"}


class _Judgment(SourceDocument):
    response: str = ""


class _Game(SourceDocument):
    judgment: _Judgment = _Judgment()
    decision: str | None = None


class _Pair(SourceDocument):
    source: str = ""
    question: str
    response_model: str
    response_A: str
    response_B: str
    label: str
    judgments: tuple[_Game | None, ...] = ()


_PAIR = TypeAdapter(_Pair)


def import_judgebench(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the files of judges in `path`. A judge is named MODEL/PROMPT, such as gpt-4o-2024-05-13/arena_hard.

    Args:
        report: called with the name of each judge before its judgments are read.

    Raises:
        UsageError: there are no files, or one cannot be read.
    """
    import_report = ImportReport(source="ScalerLab/JudgeBench, outputs", licence="see the source")
    right: Counter[str] = Counter()
    games: Counter[str] = Counter()
    for file in list_files(path, "*.jsonl", "the folder outputs of JudgeBench"):
        named = _NAMED.search(file.stem)
        judge = file.stem if named is None else f"{named['model']}/{named['judge']}"
        report(judge)
        for pair in read_json_lines(file, _PAIR):
            question_id = hashed_id(pair.question)
            writer.add_question(
                RecordedQuestion(question_id, pair.question, None, pair.source, split_by_hash(question_id))
            )
            answers = {"A": pair.response_A, "B": pair.response_B}
            for side, text in answers.items():
                _add_answer(writer, question_id, pair, text, score=float(pair.label.startswith(side)))
            for swapped, game in enumerate(pair.judgments):
                if game is None or not game.judgment.response.strip():
                    import_report.left_out[f"judgments of {judge} without a text"] += 1
                    continue
                shown_answers = [*reversed(answers.values())] if swapped else [*answers.values()]
                right_label = _REVERSED.get(pair.label, pair.label) if swapped else pair.label
                response = RecordedResponse.from_text(
                    judge, game.judgment.response, answer=None, score=float(game.decision == right_label)
                )
                seen = ShownContext(COMPARE, tuple((ANSWER_WHOLE_QUESTION, text) for text in shown_answers))
                if writer.add(question_id, response, seen=seen):
                    games[judge] += 1
                    right[judge] += game.decision == right_label
                else:
                    import_report.left_out[f"judgments of {judge} of a pair that it judged before"] += 1
    import_report.measured = {judge: right[judge] / count for judge, count in games.items()}
    return import_report


def _add_answer(writer: RecordingWriter, question_id: str, pair: _Pair, text: str, *, score: float) -> None:
    """Add an answer of a pair as the model's next sample, unless another judge's file has brought it."""
    sample = 0
    while (saved := writer.find(question_id, pair.response_model, sample)) is not None:
        if saved.text == text:
            return
        sample += 1
    response = RecordedResponse.from_text(pair.response_model, text, sample=sample, answer=None, score=score)
    writer.add(question_id, response)
