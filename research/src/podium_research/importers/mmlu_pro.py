"""Imports MMLU-Pro's `eval_results`: for each model a zip with one JSON list of records.

A record has the letter that the source found in the response. Where it found none, the answer counts as wrong here;
the source counts a random guess instead. The question's text includes its options, as `(A) ...`. The source has changed
the wording of some questions between models: the wording that most models were given is kept, and answers to any other
are left out. Source: TIGER-AI-Lab/MMLU-Pro, Apache-2.0, which publishes no accuracies with these files.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import TypeAdapter

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, split_by_hash
from podium_research.importers.documents import SourceDocument, list_files, zipped_json

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMED = re.compile(r"^(?:model_outputs_)?(?P<model>.+?)(?:_\d+-?shots)?(?:\.json)?$")


class _Record(SourceDocument):
    question_id: str
    question: str
    options: list[str]
    answer: str
    category: str = ""
    pred: str | None = None
    # Files of different years have the response under different keys:
    model_outputs: str | None = None
    generated_text: str | None = None
    model_output: str | None = None


_RECORDS = TypeAdapter(list[_Record])


def import_mmlu_pro(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the zips of models in `path`, twice: first only the wordings of questions, then the answers.

    Args:
        report: called with the name of each model before its answers are read.

    Raises:
        UsageError: there are no zips, or one cannot be read.
    """
    import_report = ImportReport(source="TIGER-AI-Lab/MMLU-Pro, eval_results", licence="Apache-2.0")
    archives = list_files(path, "*.zip", "its folder eval_results")
    wordings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for archive in archives:
        for record in _records(archive):
            wordings[record.question_id][_wording(record)] += 1
    kept_wordings = {question_id: seen.most_common(1)[0][0] for question_id, seen in wordings.items()}
    for archive in archives:
        matched = _NAMED.match(archive.stem)
        model = archive.stem if matched is None else matched["model"]
        report(model)
        for record in _records(archive):
            _add(record, kept_wordings, model, writer, import_report)
    return import_report


def _add(
    record: _Record,
    kept_wordings: dict[str, str],
    model: str,
    writer: RecordingWriter,
    import_report: ImportReport,
) -> None:
    question_id = record.question_id
    text = _wording(record)
    if text != kept_wordings[question_id]:
        import_report.left_out[f"answers of {model} to a wording that the source has changed"] += 1
        return
    texts = (record.model_outputs, record.generated_text, record.model_output)
    full_text = next((text for text in texts if text is not None), None)
    if full_text is None:
        import_report.left_out[f"records of {model} without a response"] += 1
        return
    writer.add_question(
        RecordedQuestion(question_id, text, record.answer, record.category, split_by_hash(question_id))
    )
    letter = record.pred
    fresh = writer.add(
        question_id,
        RecordedResponse.from_text(model, full_text, answer=letter, score=float(letter == record.answer)),
    )
    if not fresh:
        import_report.left_out[f"records of {model} to a question that it answered before"] += 1


def _records(archive: Path) -> Iterator[_Record]:
    for records in zipped_json(archive, _RECORDS):
        yield from records


def _wording(record: _Record) -> str:
    options = "\n".join(
        f"({letter}) {option}" for letter, option in zip(_LETTERS, record.options, strict=False)
    )
    return f"{record.question.strip()}\n{options}"
