"""Imports RouteProfile's test table: 600 questions of 12 tasks, with the responses and scores of 8 models.

The source is a checkout; the table is its `route_data/routing_test_data.json`. Scores are the task's own metric, in
[0, 1]: exact match, F1, passed tests or covered words. The source's tables show their mean, not a share of right
answers. Every question is of the split test: the source trains routers on pairs of other questions, which
`runs/routeprofile.py` reads. Source: ulab-uiuc/RouteProfile, MIT.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from pydantic import Field, TypeAdapter

from podium.errors import UsageError
from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, RecordedWorker, hashed_id
from podium.types import Price
from podium_research.importers.documents import SourceDocument, read_json

TABLE, MODELS = Path("route_data/routing_test_data.json"), Path("profile_data/candidate_models.json")
_MULTIPLE_CHOICE = "em_mc"


class _Performance(SourceDocument):
    response: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    task_performance: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class _Row(SourceDocument):
    task_name: str
    query: str
    ground_truth: str
    metric: str
    choices: str | None = None
    model_performance: dict[str, _Performance]


class _Model(SourceDocument):
    feature: str = ""
    input_price: float = Field(0.0, ge=0, allow_inf_nan=False)
    output_price: float = Field(0.0, ge=0, allow_inf_nan=False)


_ROWS, _MODELS = TypeAdapter(list[_Row]), TypeAdapter(dict[str, _Model])


def import_routeprofile(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the checkout at `path`.

    Args:
        report: called with the name of each task before its answers are read.

    Raises:
        UsageError: it has no such table, or the table cannot be read.
    """
    if not (path / TABLE).is_file():
        raise UsageError(f"{path} holds no {TABLE}; give a checkout of github.com/ulab-uiuc/RouteProfile.")
    import_report = ImportReport(source="ulab-uiuc/RouteProfile, routing_test_data", licence="MIT")
    if (path / MODELS).is_file():
        for name, model in read_json(path / MODELS, _MODELS).items():
            price = Price(input=model.input_price, output=model.output_price)
            import_report.known[name] = RecordedWorker(name=name, description=model.feature, price=price)
    scores: defaultdict[str, list[float]] = defaultdict(list)
    named: set[str] = set()
    for row in read_json(path / TABLE, _ROWS):
        if row.task_name not in named:
            named.add(row.task_name)
            report(row.task_name)
        question_id = hashed_id(row.task_name, row.query)
        writer.add_question(
            RecordedQuestion(question_id, _wording(row), row.ground_truth, row.task_name, "test")
        )
        for model_name, performance in row.model_performance.items():
            score = performance.task_performance
            if score is None:
                import_report.left_out["responses that the source did not score"] += 1
                continue
            sent, made = performance.prompt_tokens or None, performance.completion_tokens or None
            fresh = writer.add(
                question_id,
                RecordedResponse(
                    model_name, 0, performance.response, None, score, input_tokens=sent, output_tokens=made
                ),
            )
            if fresh:
                scores[model_name].append(score)
            else:
                import_report.left_out["responses to a question that is twice in the table"] += 1
    import_report.measured = {name: fmean(worker_scores) for name, worker_scores in scores.items()}
    return import_report


def _wording(row: _Row) -> str:
    """The question, with its options if it has any."""
    if row.metric != _MULTIPLE_CHOICE or row.choices is None:
        return row.query
    try:
        options = ast.literal_eval(row.choices)
        lines = [f"({label}) {text}" for label, text in zip(options["labels"], options["text"], strict=True)]
    except (ValueError, SyntaxError, KeyError, TypeError):
        return row.query
    return "\n".join((row.query.rstrip(), *lines))
