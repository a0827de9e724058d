"""Records the answers of live workers: asks each worker alone questions of each split, and writes a recording.

A recording identifies a question only by its text, so questions with a chat history or with images are left out.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.errors import RunMismatchError, UsageError
from podium.evals.answer_files import ShowProgress
from podium.evals.question_table import AskingProgress, QuestionTable, ask_each_alone, open_run_call_state
from podium.recordings import (
    SPLITS,
    RecordedQuestion,
    RecordedResponse,
    RecordedWorker,
    RecordingHeader,
    RecordingWriter,
)
from podium.rollout import Rollout
from podium.rollout.data_fingerprint import DataFingerprint, value_digest
from podium.rollout.run_folder import CONFIG, RunFolder
from podium.spending.spend_limit import SpendLimitError
from podium.tasks import open_tasks, warnings_of
from podium.tasks.open import open_splits, splits_of
from podium.tasks.task import Task
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker

_MAX_GOLD_CHARS = 10_000
"""The most characters of a saved gold answer. Tests of programs are longer, and only their verdicts are saved."""
_SHARES = dict(zip(SPLITS, (70, 15, 15), strict=True))
"""Percent of the questions in each split. Imported recordings whose source has no splits have the same shares."""
_MAY_GROW = ("questions", "repeats")
"""Settings that may have grown when a recording is resumed."""


@dataclass(frozen=True)
class QuestionsToRecord:
    """The questions of a recording. The splits are evenly mixed, so that a recording that stops early has some of
    each."""

    tasks: tuple[Task, ...]
    split_of: Mapping[str, str]
    """By the id of the question."""
    sets: tuple[str, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def open(cls, name: str, split: str | None, *, size: int, seed: int) -> QuestionsToRecord:
        """The questions of `split`. Default: those of train, validation and test, as far as the set has them.

        Raises:
            UsageError: the set has none of these splits.
            NoTasksError: the splits have no questions.
        """
        there = splits_of(name)
        names = [split] if split is not None else [share for share in _SHARES if share in there]
        if not names:
            raise UsageError(
                f"{name} has no split train, validation or test; name one with --split, such as {there[0]}."
            )
        opened = open_splits(name, names, seed=seed) or {
            names[0]: open_tasks(name, names[0])  # It has no tasks, and the error says why.
        }
        warnings = [warning for tasks in opened.values() for warning in warnings_of(tasks)]
        counts = _questions_of_splits(size, {split_name: len(tasks) for split_name, tasks in opened.items()})
        if (total := sum(counts.values())) < size:
            warnings.append(
                f"{name}: --questions {size}, but {', '.join(names)} {'has' if len(names) == 1 else 'have'} "
                f"only {total:,} question{'s' * (total != 1)}; the recording has all of them."
            )
        taken = [
            ((k + 0.5) / count, opened[split_name][k], split_name)
            for split_name, count in counts.items()
            for k in range(count)
        ]
        bare, left_out = bare_tasks(task for _, task, _ in sorted(taken, key=lambda each: each[0]))
        return cls(
            tuple(bare),
            {task.id: split_name for _, task, split_name in taken},
            tuple(opened[split_name].name for split_name, count in counts.items() if count),
            left_out,
            tuple(warnings),
        )


def _questions_of_splits(size: int, lengths: Mapping[str, int]) -> dict[str, int]:
    """How many questions to take from each split, by the shares. If a split has too few, the others give more."""
    share_of = {name: _SHARES.get(name, 1) for name in lengths}
    left, shares = size, sum(share_of.values())
    order = list(lengths)
    if any(lengths[name] * shares < size * share for name, share in share_of.items()):
        order.sort(key=lambda name: lengths[name] / share_of[name])
    counts = dict.fromkeys(lengths, 0)
    for name in order:
        counts[name] = min(lengths[name], round(left * share_of[name] / shares))
        left, shares = left - counts[name], shares - share_of[name]
    return counts


def recorded_workers(pool: Pool, names: Iterable[str] = ()) -> Pool:
    """The workers of these names, in the order of the pool. All workers if there are no names.

    Raises:
        ConfigError: the pool has no worker of such a name.
        UsageError: one of them replays a recording.
    """
    wanted = {pool.named(name) for name in names} or {*pool}
    workers = pool.subset([number for number, worker in enumerate(pool) if worker in wanted])
    replayed = next((worker.profile.name for worker in workers if isinstance(worker, ReplayWorker)), None)
    if replayed is not None:
        raise UsageError(
            f"Worker {replayed!r} replays a recording; leave it out of the pool, or copy its recording."
        )
    return workers


class MaxCalls:
    """The most calls of one start, as a `SpendLimit`. Each try of a worker or judge is a call, whatever it costs. It
    must be the last of the limits: it takes no call back that a later limit refuses."""

    def __init__(self, calls: int) -> None:
        self.refusal: str | None = None
        self._calls, self._made = calls, 0

    @property
    def exhausted(self) -> bool:
        return self._made >= self._calls

    def reserve(self, usd: float) -> None:
        """Count a call, or refuse it since the calls are used up."""
        if self.exhausted:
            raise SpendLimitError(f"The budget of {self._calls} calls is used up.", self)
        self._made += 1

    def settle(self, reserved_usd: float, paid_usd: float) -> None:
        """Do nothing: a call that has ended was made all the same."""

    async def wait_for_room(self, usd: float) -> bool:
        """Return False: the end of a call makes no room for another."""
        return False


@dataclass(frozen=True)
class RecordingRun:
    """Records the workers of a pool. A folder beside the recording keeps the answers until it has all of them."""

    out: Path
    questions: QuestionsToRecord
    table: QuestionTable
    """The same questions, in the folder of the answers, with the workers."""

    def open_folder(self, made_of: Mapping[str, Any]) -> None:
        """Make the folder, or continue the recording in it.

        Args:
            made_of: where the questions come from, and their number.

        Raises:
            RunMismatchError: the folder has a recording of other questions or workers, or of more answers, which are
                paid for.
        """
        folder, pool = self.table.folder, self.table.pool
        configuration: dict[str, Any] = {
            # The identity includes the server's address, since another server may have another model of this name.
            "workers": {
                name: about | {"identity": value_digest(pool.named(name).identity)}
                for name, about in DataFingerprint.of((), pool).workers.items()
            },
            **made_of,
            "seed": self.table.seed,
            "repeats": self.table.repeats,
        }
        before = RunFolder(folder).configuration if (folder / CONFIG).is_file() else {}
        for name in _MAY_GROW:
            if configuration[name] < before.get(name, 0):
                raise RunMismatchError(
                    f"the recording was begun with {before[name]} {name}, and this run has {configuration[name]}; give "
                    "at least as many, or give another name for the recording."
                )
        RunFolder.open(folder, configuration, changeable=_MAY_GROW)

    async def ask(self, calls: int | None, show: ShowProgress) -> tuple[AskingProgress, float]:
        """Ask the workers, and close them at the end. Also returns the dollars of all starts.

        Args:
            calls: the most calls of this start. None sets no limit.
        """
        table = self.table
        limits = () if calls is None else (MaxCalls(calls),)
        with open_run_call_state(table.team, table.pool, table.folder) as call_state:
            try:
                progress = await ask_each_alone([table], call_state.with_spend_limits(*limits), show)
                return progress, call_state.run_spent_usd or 0.0
            finally:
                await table.pool.close()

    def write(self, name: str, missing: int) -> RecordingHeader:
        """Write the recording, and remove the folder if no answer is missing.

        Raises:
            UsageError: there is no answer.
            StoreError: the disk is full or not writable. A recording that was there stays.
        """
        table, split_of = self.table, self.questions.split_of
        recorded = {task.id: _question(task, split_of[task.id]) for task in table.questions}
        lacking = [f"responses that are still missing ({missing})"] if missing else []
        with RecordingWriter() as writer:
            for worker in table.pool.answering:
                for (task_id, sample), answer in table.alone(worker).kept_answers().items():
                    response = _response(worker, answer)
                    if response is not None and sample < table.repeats:
                        writer.add_question(recorded[task_id])
                        writer.add(task_id, response)
            header = writer.write(
                self.out,
                name=name,
                source=f"recorded from live workers; tasks: {', '.join(self.questions.sets)}",
                left_out=[*self.questions.left_out, *lacking],
                known={
                    profile.name: RecordedWorker(
                        name=profile.name, description=profile.description, price=profile.price
                    )
                    for profile in table.pool.profiles
                },
            )
        if not missing:
            shutil.rmtree(table.folder)
        return header


def bare_tasks(tasks: Iterable[Task]) -> tuple[list[Task], tuple[str, ...]]:
    """The tasks whose question is only a text, and a sentence about each sort of other tasks with their number."""
    bare: list[Task] = []
    left_out: Counter[str] = Counter()
    for task in tasks:
        if task.question.history:
            left_out["questions with a chat history: a recording identifies a question by its text"] += 1
        elif task.question.images:
            left_out["questions with images: a recording identifies a question by its text"] += 1
        else:
            bare.append(task)
    return bare, tuple(f"{reason} ({count})" for reason, count in left_out.items())


def _question(task: Task, split: str) -> RecordedQuestion:
    gold = task.gold if len(task.gold) <= _MAX_GOLD_CHARS else None
    return RecordedQuestion(task.id, task.question.text, gold, None, split)


def _response(worker: str, answer: Rollout) -> RecordedResponse | None:
    span = next(iter(answer.trace.spans), None)
    if span is None or span.response is None:
        return None
    judged = answer.grade.failure is None
    return RecordedResponse(
        worker=worker,
        sample=answer.sample,
        text=span.response,
        answer=answer.grade.found if judged else None,
        score=answer.grade.score if judged else None,
        input_tokens=span.usage.input_tokens,
        output_tokens=span.usage.output_tokens,
        estimated=span.usage.estimated,
        seconds=span.seconds,
    )
