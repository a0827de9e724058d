"""The questions of a study, from a task set, a table without right answers, or stored traces.

The questions are shuffled by their ids. So a study that reaches only the first of them has asked a fair sample, however
the file is ordered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from podium.errors import ConfigError, NoTasksError, UsageError
from podium.evals.question_table import QuestionTable
from podium.evals.study.judges import JudgedGrader, NoVerdictGrader, OutcomeGrader, PoolJudge
from podium.files.tables import is_empty, is_table, read_rows
from podium.recordings.recording_model import hashed_id
from podium.tasks import ALL_TASKS, Grader, Task, open_tasks, warnings_of
from podium.tasks.open import generated_names, splits_of
from podium.tasks.task import named_uniform, shuffled
from podium.team.settings import TeamSettings
from podium.trace import Trace
from podium.types import Question
from podium.workers.base import Worker
from podium.workers.pool import Pool
from podium.workers.vote import vote_key

JudgedBy = Literal["golds", "judge", "agreement", "outcomes", "outcomes and judge"]
"""The judge of answers: known right answers, a worker of the pool, the other workers, users, or users with a
worker where they said nothing."""
_GENERATED = 300
"""How many generated questions are taken by default, since a generated set is infinite."""


@dataclass(frozen=True)
class StudyQuestions:
    """The questions of a study, shuffled."""

    name: str
    tasks: tuple[Task, ...]
    judged_by: JudgedBy
    notes: tuple[str, ...] = ()
    """Sentences on what was left out, and on what a reader has to know about the verdicts."""

    def table(self, folder: Path, team: TeamSettings, pool: Pool, concurrency: int = 16) -> QuestionTable:
        """The table of these questions for the workers of a pool. `folder` keeps the answers."""
        judged = self.judged_by != "agreement"
        return QuestionTable(folder, team, pool, self.tasks, judged=judged, concurrency=concurrency)

    def with_judge(self, judge: PoolJudge) -> StudyQuestions:
        """These questions. If the right answer of a question is not known, `judge` judges its answers."""
        if self.judged_by == "golds":
            return self

        def graded(task: Task) -> Task:
            own = JudgedGrader(judge, task.question.text)
            known = task.grader
            return replace(
                task, grader=replace(known, otherwise=own) if isinstance(known, OutcomeGrader) else own
            )

        judged_by: JudgedBy = "outcomes and judge" if self.judged_by == "outcomes" else "judge"
        return replace(self, tasks=tuple(map(graded, self.tasks)), judged_by=judged_by)


def load_study_questions(
    name: str,
    *,
    split: str | None = None,
    size: int | None = None,
    seed: int = 0,
    pool: Iterable[Worker] = (),
) -> StudyQuestions:
    """The questions of a task set or a table. A table may lack the column `answer`, and then no right answer is known.

    Args:
        split: the split. Default: all splits together, since a study divides the questions itself.

    Raises:
        ConfigError: there is no such set or split, or it has no questions.
    """
    path = Path(name)
    if is_table(path) and not name.endswith(".parquet") and not _has_answers(path):
        if split is not None:
            raise ConfigError(f"{path} has no column answer, so it has no splits; leave --split out.")
        return _without_answers(path, size, seed)
    tasks: list[Task] = []
    notes: dict[str, None] = {}
    wanted = size or (_GENERATED if name in generated_names() else ALL_TASKS)
    splits = (split,) if split is not None else splits_of(name)
    if name in generated_names() and split is None:
        splits = ("test",)
    for name_of_split in splits:
        try:
            opened = open_tasks(name, name_of_split, size=wanted, seed=seed, pool=pool)
        except NoTasksError:
            if split is not None:
                raise
            continue
        tasks += opened
        notes.update(dict.fromkeys(warnings_of(opened)))
    if not tasks:
        raise NoTasksError(f"{name} has no questions; check the file.")
    return StudyQuestions(path.stem, tuple(shuffled(tasks, seed)[:size]), "golds", tuple(notes))


def _has_answers(path: Path) -> bool:
    return any("answer" in row.values for row in read_rows(path, allow_missing=True))


def _without_answers(path: Path, size: int | None, seed: int) -> StudyQuestions:
    by_id: dict[str, Task] = {}
    for row in read_rows(path, {"question"}):
        if row.error:
            raise UsageError(f"{row.location}: {row.error}; fix the row.")
        if is_empty(row.values["question"]):
            raise UsageError(f"{row.location}: its question is empty; fix the row.")
        text = str(row.values["question"]).strip()
        task = Task(f"{path.stem}/{hashed_id(text)}", Question(text=text), "", NoVerdictGrader())
        by_id[task.id] = task
    tasks = tuple(shuffled(by_id.values(), seed)[:size])
    if not tasks:
        raise NoTasksError(f"{path} has no questions; check the file.")
    return StudyQuestions(path.stem, tasks, "agreement")


def questions_of_traces(
    traces: Iterable[Trace], *, share: float, size: int | None = None, seed: int = 0
) -> StudyQuestions:
    """The questions of a share of the stored traffic, each once.

    A hash of the text decides whether a question belongs to the share, so a later run with a larger share only adds
    questions. Questions with a chat history or with images are left out and counted. If users judged answers (a trace's
    outcome), their verdicts are used.

    Args:
        share: the share of the different questions, from 0 to 1.

    Raises:
        NoTasksError: no question is left.
    """
    traces_by_text: dict[str, list[Trace]] = {}
    left_out: Counter[str] = Counter()
    for trace in traces:
        if trace.question.history or trace.question.images:
            left_out["with a chat history or images, which make another question of the same text"] += 1
        elif named_uniform("shadow", seed, trace.question.text.strip()) < share:
            traces_by_text.setdefault(trace.question.text.strip(), []).append(trace)
    tasks = [_traffic_task(text, same_question) for text, same_question in traces_by_text.items()]
    if not tasks:
        raise NoTasksError(
            f"No stored question is in a share of {share:g}; take a larger --share, or another --traces."
        )
    tasks = shuffled(tasks, seed)[:size]
    notes = [f"Traces of questions {reason}, are left out ({count:,})." for reason, count in left_out.items()]
    known = [task for task in tasks if isinstance(task.grader, OutcomeGrader)]
    if not known:
        return StudyQuestions("traffic", tuple(tasks), "agreement", tuple(notes))
    notes.append(
        f"Users judged the answers to {len(known):,} of {len(tasks):,} questions; only these questions count, unless "
        "a judge is named. Where they called an answer right, only answers equal to it count as right. Where they "
        "called it wrong, other answers need a judge. So without a judge the team that gave those answers looks "
        "better than it is."
    )
    return StudyQuestions("traffic", tuple(tasks), "outcomes", tuple(notes))


def _traffic_task(text: str, traces: Sequence[Trace]) -> Task:
    judged = {
        (answer, trace.outcome.right)
        for trace in traces
        if trace.outcome is not None and (answer := vote_key(trace.answer)) is not None
    }
    right = frozenset(answer for answer, verdict in judged if verdict)
    wrong = frozenset(answer for answer, verdict in judged if verdict is False) - right
    grader: Grader = NoVerdictGrader()
    if right or wrong:
        grader = OutcomeGrader(right, wrong, NoVerdictGrader())
    return Task(f"traffic/{hashed_id(text)}", Question(text=text), "", grader)
