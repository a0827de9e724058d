"""Imports folders of reasoning-gym-eval: one for each model, in it `<category>/<task>.json` and `summary.json`.

The task's own verifier gave the scores, in [0, 1]. The published figure of a model is the mean over tasks of the
mean scores in its `summary.json`. Source: open-thought/reasoning-gym-eval, `zero-shot/easy` or `zero-shot/hard`,
Apache-2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import Field, TypeAdapter

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, hashed_id, split_by_hash
from podium_research.importers.documents import SourceDocument, list_folders, read_json

_DATED = re.compile(r"^(?P<model>.+?)(_\d{8}_\d{6})?$")


class _Completion(SourceDocument):
    model_answer: Any = None
    full_model_response: str | None = None
    score: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class _Result(SourceDocument):
    question: str
    expected_answer: Any = None
    completions: tuple[_Completion, ...] = ()


class _TaskSet(SourceDocument):
    name: str
    results: list[_Result]


class _Summary(SourceDocument):
    model: str | None = None
    dataset_mean_scores: dict[str, float] = Field(default_factory=dict)


_TASK_SET, _SUMMARY = TypeAdapter(_TaskSet), TypeAdapter(_Summary)


def import_reasoning_gym(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the folders of models in `path`.

    Args:
        report: called with the name of each model before its answers are read.

    Raises:
        UsageError: there are no folders, or a file in them cannot be read.
    """
    import_report = ImportReport(source="open-thought/reasoning-gym-eval", licence="Apache-2.0")
    for folder in list_folders(path, "one of its zero-shot folders, such as zero-shot/easy"):
        summary = folder / "summary.json"
        summary_of = read_json(summary, _SUMMARY) if summary.is_file() else _Summary()
        model = summary_of.model or _model(folder.name)
        report(model)
        means = {}
        for file in sorted(folder.glob("*/*.json")):
            task_set = read_json(file, _TASK_SET)
            scores = _add_task(task_set, model, writer, import_report)
            if scores:
                means[task_set.name] = fmean(scores)
        published = summary_of.dataset_mean_scores
        both = sorted(means.keys() & published.keys())
        import_report.left_out[f"task sets of {model} without a published figure"] += len(means) - len(both)
        if both:
            import_report.published[model] = fmean(published[task] for task in both)
            import_report.measured[model] = fmean(means[task] for task in both)
    import_report.left_out = +import_report.left_out
    return import_report


def _add_task(
    task_set: _TaskSet, model: str, writer: RecordingWriter, import_report: ImportReport
) -> list[float]:
    """Add one model's answers to one task set; returns the mean score of each question that has scores."""
    family = task_set.name
    scores: list[float] = []
    for result in task_set.results:
        text = result.question
        question_id = hashed_id(family, text)
        gold = result.expected_answer
        writer.add_question(
            RecordedQuestion(
                question_id, text, None if gold is None else str(gold), family, split_by_hash(question_id)
            )
        )
        drawn: list[float] = []
        for sample, completion in enumerate(result.completions):
            score, full_text = completion.score, completion.full_model_response
            if score is None or full_text is None:
                import_report.left_out["completions without a text or a score in the source"] += 1
                continue
            drawn.append(score)
            answer = completion.model_answer
            fresh = writer.add(
                question_id,
                RecordedResponse.from_text(
                    model,
                    full_text,
                    sample=sample,
                    answer=None if answer is None else str(answer),
                    score=score,
                ),
            )
            if not fresh:
                import_report.left_out["completions to a question that is twice in its task set"] += 1
        if drawn:
            scores.append(fmean(drawn))
    return scores


def _model(folder: str) -> str:
    """ "anthropic_claude-3.5-sonnet_20250315_163713" is anthropic/claude-3.5-sonnet."""
    matched = _DATED.match(folder)
    name = folder if matched is None else matched["model"]
    return name.replace("_", "/", 1)
