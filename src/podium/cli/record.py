"""`podium record`: records live workers' answers to a task set, so that planners can be compared on them afterwards."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.calls.dispatcher import RESPONSES
from podium.cli.options import Flag
from podium.cli.output_files import check_recording_path, parent_folder, refuse_existing
from podium.cli.printable import counted, dollars
from podium.cli.progress import say_what_is_missing, show_progress
from podium.cli.questions import check_size, open_questions
from podium.cli.team_file import find_team
from podium.cli.team_options import Overrides, RunOptions
from podium.cli.terminal import open_console, print_sentence
from podium.config import build
from podium.errors import NoTasksError, RunMismatchError, UsageError
from podium.evals.suite.asking import AskingProgress, StartLimit, ask_each_alone, open_run_dispatcher
from podium.evals.suite.question_table import QuestionTable
from podium.evals.suite.recorder import bare_tasks, write_recording
from podium.files import lock_folder
from podium.recordings import SPLITS, header_path, require_pyarrow, unfinished_path
from podium.rollout.data_fingerprint import DataFingerprint, value_digest
from podium.rollout.run_folder import CONFIG, RunFolder
from podium.tasks import ALL_TASKS, Task, TaskSet
from podium.tasks.open import splits_of
from podium.team.settings import TeamSettings
from podium.team.team_file import open_pool
from podium.types import Budget
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker

_SHARES = dict(zip(SPLITS, (70, 15, 15), strict=True))
"""Percent of the questions in each split. Imported recordings whose source has no splits have the same shares."""


def record(
    out: Path,
    /,
    *keys: Overrides,
    team: RunOptions = RunOptions(),
    tasks: str,
    split: str | None = None,
    questions: int = 100,
    samples: int = 1,
    worker: Annotated[list[str] | None, Parameter(name="--worker", negative="")] = None,
    name: str | None = None,
    concurrency: int = 16,
    budget_calls: int | None = None,
    budget_seconds: float | None = None,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Record what the workers of a pool answer. The same command resumes a recording that was stopped.

    Args:
        out: The recording, NAME.parquet; its header NAME.json is written into the same folder.
        tasks: The task set, a task file, NAME.toml, or a table, NAME.csv or NAME.jsonl.
        split: The split to take the questions from. Default: 70 % train, 15 % validation and 15 % test, as far as the
            task set has these splits.
        questions: How many questions, of all splits together.
        samples: How many answers of each worker to each question.
        worker: A worker to record. May be given several times. Default: all that are no tools.
        name: The recording's name. Default: the file's.
        concurrency: The most calls at once.
        budget_calls: The most calls of this start, retries included.
        budget_seconds: The most seconds of this start.
        seed: Seeds the choice of questions and what workers draw.
        json: Print the header as one line of JSON.
    """
    check_recording_path(out)
    require_pyarrow()  # Before anything is paid.
    settings = find_team(team, keys).read()
    if samples < 1 or concurrency < 1:
        raise UsageError(f"--samples {samples}, --concurrency {concurrency}: give at least 1 of each.")
    if questions < 1:
        raise UsageError(f"--questions {questions}: ask for at least 1.")
    check_size(questions, tasks)
    unfinished = unfinished_path(out)
    if not unfinished.exists():
        refuse_existing((out, header_path(out)), "remove {them} to record again")
    budget = build({"calls": budget_calls, "seconds": budget_seconds}, Budget, source="--budget")
    parts = _open_splits(tasks, split, size=questions, seed=seed)
    # Workers do not see ratings, and a recording must not depend on them.
    workers = _named(open_pool(settings, rated=False), worker or ())
    _refuse_recorded(workers)
    bare, left_out = bare_tasks(_spread(parts.values()))
    table = QuestionTable.of(
        unfinished, settings, workers, bare, name=tasks, concurrency=concurrency, seed=seed
    )
    configuration = {
        # Also where its model is served: under one name there may be another model.
        "workers": {
            name: about | {"identity": value_digest(workers.named(name).identity)}
            for name, about in DataFingerprint.of((), workers).workers.items()
        },
        "tasks": tasks,
        "split": split,
        "seed": seed,
        "questions": questions,
        "samples": samples,
    }
    with parent_folder(unfinished / RESPONSES), lock_folder(unfinished):
        _refuse_fewer(unfinished, {"questions": questions, "samples": samples})
        RunFolder.open(unfinished, configuration, changeable=("questions", "samples"))
        progress, spent_usd = asyncio.run(_ask(table, samples, settings, budget))
        say = partial(print_sentence, open_console(stderr=json))
        for sentence in left_out:
            say(f"Left out: {sentence}.")
        if not progress.kept:
            say_what_is_missing(progress, stderr=json)
            return 1
        still_missing = progress.wanted - progress.kept
        split_of = {task.id: name for name, part in parts.items() for task in part.tasks}
        header = write_recording(
            out,
            table,
            samples=samples,
            split_of=split_of.__getitem__,
            name=name or out.stem,
            source=f"recorded from live workers; tasks: {', '.join(part.set for part in parts.values())}",
            left_out=[
                *left_out,
                *([f"responses that are still missing ({still_missing})"] if still_missing else []),
            ],
        )
        if not still_missing:
            shutil.rmtree(unfinished)
    if json:
        print(header.model_dump_json())
    else:
        say(
            f"{counted(header.responses, 'response')} to {counted(header.questions, 'question')} are in {out}; "
            f"it cost {dollars(spent_usd)}."
        )
    say_what_is_missing(progress, stderr=json)
    return 1 if still_missing else 0


def _refuse_fewer(folder: Path, counts: Mapping[str, int]) -> None:
    """Raise `RunMismatchError` if an earlier start began to record more: its answers are paid for."""
    before = RunFolder(folder).configuration if (folder / CONFIG).is_file() else {}
    for name, count in counts.items():
        if count < before.get(name, 0):
            raise RunMismatchError(
                f"the recording was begun with {before[name]} {name}, and this run has {count}; give at least as many, "
                "or give another name for the recording."
            )


def _named(pool: Pool, names: Iterable[str]) -> Pool:
    """The workers of these names, in the order of the pool; all if there are none. `ConfigError` for another name."""
    wanted = {pool.named(name) for name in names} or {*pool}
    return pool.subset([number for number, worker in enumerate(pool) if worker in wanted])


def _refuse_recorded(pool: Pool) -> None:
    name = next((worker.profile.name for worker in pool if isinstance(worker, ReplayWorker)), None)
    if name is not None:
        raise UsageError(
            f"Worker {name!r} replays a recording; leave it out of the pool, or copy its recording."
        )


@dataclass(frozen=True, slots=True)
class _Part:
    """The questions of one split."""

    set: str
    tasks: list[Task]


def _open_splits(tasks: str, split: str | None, *, size: int, seed: int) -> dict[str, _Part]:
    """The questions of each split: of the split that is named, or of train, validation and test if `tasks` has them.

    Prints a warning if all of them together have fewer than `size`.
    """
    had = splits_of(tasks)
    names = [split] if split is not None else [name for name in _SHARES if name in had]
    if not names:
        raise UsageError(
            f"{tasks} has no split train, validation or test; name one with --split, such as {had[0]}."
        )
    opened: dict[str, TaskSet] = {}
    no_tasks: NoTasksError | None = None
    for name in names:
        try:
            opened[name] = open_questions(tasks, name, size=ALL_TASKS, seed=seed)
        except NoTasksError as error:
            no_tasks = no_tasks or error
    if no_tasks is not None and not opened:
        raise no_tasks
    counts = _questions_of_splits(
        size, {name: len(tasks_of_split) for name, tasks_of_split in opened.items()}
    )
    if sum(counts.values()) < size:
        print_sentence(
            open_console(stderr=True),
            f"{tasks}: --questions {size}, but {', '.join(names)} {'has' if len(names) == 1 else 'have'} "
            f"only {counted(sum(counts.values()), 'question')}; the recording has all of them.",
        )
    return {
        name: _Part(opened[name].name, [opened[name][number] for number in range(count)])
        for name, count in counts.items()
        if count
    }


def _questions_of_splits(size: int, lengths: Mapping[str, int]) -> dict[str, int]:
    """How many questions to take from each split, by the shares. If a split has too few, the others give more."""
    counts: dict[str, int] = {}
    left, shares = size, sum(_SHARES.get(name, 1) for name in lengths)
    for name in lengths:
        share = _SHARES.get(name, 1)
        counts[name] = round(left * share / shares)
        left, shares = left - counts[name], shares - share
    short = {name: length for name, length in lengths.items() if length < counts[name]}
    if not short:
        return counts
    others = {name: length for name, length in lengths.items() if name not in short}
    rest = _questions_of_splits(size - sum(short.values()), others)
    return {name: short.get(name, rest.get(name, 0)) for name in lengths}


def _spread(parts: Iterable[_Part]) -> list[Task]:
    """The questions of all splits evenly mixed, so that a recording that stops early has some of each."""
    placed = [((k + 0.5) / len(part.tasks), task) for part in parts for k, task in enumerate(part.tasks)]
    return [task for _, task in sorted(placed, key=lambda place: place[0])]


async def _ask(
    table: QuestionTable, samples: int, settings: TeamSettings, budget: Budget
) -> tuple[AskingProgress, float]:
    """Ask the workers. At the end, close their connections. Also returns the dollars of all starts."""
    with (
        show_progress() as show,
        open_run_dispatcher(settings, table.pool, table.folder) as dispatcher,
    ):
        try:
            limit, limited = dispatcher.run_limit, dispatcher
            if budget.calls is not None or budget.seconds is not None:
                limited = dispatcher.with_spend_limits(StartLimit(budget.calls, budget.seconds))
            progress = await ask_each_alone([(table, samples)], limited, show)
            return progress, 0.0 if limit is None else limit.spent_usd
        finally:
            await table.pool.close()
