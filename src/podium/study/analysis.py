"""From recorded answers to a study's result and the files that serve it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from podium.study.answering import Recorded
from podium.study.conducting import TRAINED, Conducted
from podium.study.crossfit import Measured, crossfit
from podium.study.decision import MARGIN, Decision, Finding, decide
from podium.study.diversity import diversity
from podium.study.methods import Training, methods_for
from podium.study.questions import StudyQuestions
from podium.study.result import Bounds, Study, number_of, rows_of
from podium.study.serving_files import TEAM, ServingFiles
from podium.workers.pool import Pool


def analyse(
    recorded: Recorded,
    questions: StudyQuestions,
    conducted: Sequence[Measured] = (),
    *,
    margin: float = MARGIN,
    seed: str = "0",
) -> Decision:
    """Measure all methods on the recorded answers, and decide.

    Args:
        conducted: the Conductors that were measured already, on the same questions in the same order.
    """
    answers = recorded.answers
    methods = methods_for(answers, teams=questions.judged_by != "agreement")
    return decide([*crossfit(answers, methods, seed=seed), *conducted], margin=margin)


def result_of(
    decision: Decision,
    recorded: Recorded,
    questions: StudyQuestions,
    conducted: Conducted,
    *,
    judge: str | None,
    replayed: bool,
    spent_usd: float,
    files: tuple[str, ...],
) -> Study:
    """The study as it is stored."""
    detectable = None if math.isnan(decision.detectable) else decision.detectable
    return Study(
        tasks=questions.name,
        questions=len(recorded.answers.texts),
        judged_by=questions.judged_by,
        judge=judge,
        workers=recorded.answers.workers,
        rows=rows_of(decision),
        recommended=number_of(decision.findings, decision.recommended) or 0,
        cheaper=number_of(decision.findings, decision.cheaper),
        margin=decision.margin,
        detectable=detectable,
        bounds=Bounds.of(diversity(recorded.repeated)),
        spent_usd=spent_usd,
        recorded=replayed,
        notes=(*questions.notes, *recorded.notes, *conducted.notes),
        files=files,
    )


def write_serving_files(
    folder: Path,
    decision: Decision,
    recorded: Recorded,
    *,
    pool_name: str,
    pool: Pool,
    checkpoint: str | None = None,
) -> tuple[str, ...]:
    """Write `team.toml` for the recommendation, and `cheaper.toml` if the cheaper choice is another one."""
    ratings = Training(recorded.answers).ratings if len(recorded.answers.workers) > 1 else None
    files = ServingFiles(folder, pool_name, pool, ratings, checkpoint)

    def write(name: str, finding: Finding) -> str:
        method = finding.method
        return files.write(name, method, trained=method.name == TRAINED)

    written = [write(TEAM, decision.recommended)]
    if decision.cheaper is not None and decision.cheaper is not decision.recommended:
        written.append(write("cheaper", decision.cheaper))
    return tuple(written)
