"""Imports RouterDC's data sets: the scores of seven models on questions, without any text of theirs.

The source is a checkout; the data sets are the JSON files of its `datasets/split2_model7`. Where the source scored one
attempt by its probability, a score above 0 means that the answer is right, as in the source's own evaluation; else the
score is the share of right attempts. So the recording serves the choice of one worker, and nothing else: a vote has no
answers to count. Source: shuhao02/RouterDC, which has no licence, so that what is made from it may not be passed on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import RecordedQuestion, RecordedResponse, hashed_id
from podium_research.importers.documents import SourceDocument, list_files, read_json

FOLDER = Path("datasets/split2_model7")
_ATTEMPTS = ("gsm8k", "humaneval", "mbpp", "javascript")
"""Data sets whose scores are shares of right attempts."""
_NAMED = re.compile(r"^(?P<set>.+?)(?:[-_](?P<split>train|test))?$")


class _Row(SourceDocument):
    question: str
    scores: dict[str, float]


_ROWS = TypeAdapter(list[_Row])


def import_routerdc(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the checkout at `path`. A data set without a training part is of the split test.

    Args:
        report: called with the name of each file before it is read.

    Raises:
        UsageError: there are no data sets, or one cannot be read.
    """
    import_report = ImportReport(
        source="shuhao02/RouterDC, split2_model7", licence="none: not to be passed on"
    )
    scores: defaultdict[str, list[float]] = defaultdict(list)
    for file in list_files(path / FOLDER, "*.json", "a checkout of github.com/shuhao02/RouterDC"):
        named = _NAMED.match(file.stem)
        assert named is not None, "any name fits"
        family = named["set"]
        report(file.stem)
        for row in read_json(file, _ROWS):
            question_id = hashed_id(family, row.question)
            writer.add_question(
                RecordedQuestion(question_id, row.question, None, family, named["split"] or "test")
            )
            for worker, stated in row.scores.items():
                score = min(stated, 1.0) if family in _ATTEMPTS else float(stated > 0)
                # A text of its own for each worker, because a response is graded by its text.
                text = f"The source has the score of {worker}, and not its answer."
                if writer.add(question_id, RecordedResponse(worker, 0, text, None, score)):
                    scores[worker].append(score)
                else:
                    import_report.left_out[f"scores of questions that are twice in {family}"] += 1
    import_report.measured = {worker: fmean(worker_scores) for worker, worker_scores in scores.items()}
    return import_report
