"""`podium record`: asks live workers a task set once, so that planners can be tried on their answers afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from podium.cli.dispatching import open_dispatcher
from podium.cli.opening import open_console, to_budget
from podium.cli.options import PLAIN_CALLS, BudgetOptions, DispatchOptions, Flag, PoolName
from podium.cli.printable import counted, dollars
from podium.cli.questions import open_questions
from podium.errors import UsageError
from podium.orchestrator.team import open_pool
from podium.recordings import Gathering, Header, RecordedWorker
from podium.rollout import recorder
from podium.tasks import TaskSet
from podium.workers.pool import Pool


def record(
    out: Path,
    /,
    *,
    pool: PoolName = None,
    tasks: str = "embedded",
    split: str = "train",
    questions: int = 100,
    samples: int = 1,
    name: str | None = None,
    concurrency: int = 16,
    budget_calls: int | None = None,
    budget_usd: float | None = None,
    budget_seconds: float | None = None,
    calls: DispatchOptions = PLAIN_CALLS,
    seed: int = 0,
    json: Flag = False,
) -> int:
    """Record what every worker of a pool answers; the same command goes on where it was stopped.

    Args:
        out: NAME.parquet; NAME.json is written beside it.
        tasks: The task set, or a task file, NAME.toml.
        split: Its split.
        questions: How many.
        samples: Answers of each worker to each question.
        name: The recording's name. Default: that of the file.
        concurrency: Calls at once.
        budget_calls: Calls of this run at most.
        budget_usd: Dollars of this run at most.
        budget_seconds: Seconds of this run at most.
        seed: Names the questions and the randomness of simulated workers.
        json: Print the header as one line of JSON.
    """
    if out.suffix != ".parquet":
        raise UsageError(f"{out}: a recording's file is called NAME.parquet.")
    if samples < 1 or concurrency < 1:
        raise UsageError(f"--samples {samples}, --concurrency {concurrency}: give at least 1 of each.")
    budget = to_budget(
        BudgetOptions(budget_calls=budget_calls, budget_usd=budget_usd, budget_seconds=budget_seconds)
    )
    asked = open_questions(tasks, split, size=questions, seed=seed)
    workers = open_pool(pool or "embedded")
    out.parent.mkdir(parents=True, exist_ok=True)
    kept = out.with_suffix(".gathering")
    with Gathering(kept) as gathering:
        gathering.identify(
            {
                "pool": [profile.model_dump(mode="json", exclude={"rating"}) for profile in workers.profiles],
                "tasks": tasks,
                "split": split,
                "seed": seed,
            }
        )
        gathering.commit()
        progress = asyncio.run(
            _ask(
                workers,
                asked,
                gathering,
                calls,
                split=split,
                samples=samples,
                concurrency=concurrency,
                budget=budget,
                seed=f"{seed}",
            )
        )
        gone = progress.wanted - progress.kept
        if not progress.kept:
            _say_what_is_missing(progress)
            return 1
        header = gathering.write(
            out,
            name=name or out.stem,
            source=f"recorded from live workers; tasks: {asked.name}",
            left_out=[f"responses that could not be had yet ({gone})"] if gone else (),
            known={
                p.name: RecordedWorker(name=p.name, description=p.description, price=p.price)
                for p in workers.profiles
            },
        )
    if not gone:
        kept.unlink()
    _report(progress, header, out, json=json)
    return 1 if gone else 0


async def _ask(
    pool: Pool, tasks: TaskSet, gathering: Gathering, calls: DispatchOptions, **options: Any
) -> recorder.Progress:
    """Ask, with a bar; the workers' connections are given back."""
    columns = (TextColumn("Recording"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = open_console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        line = bar.add_task("", total=None)

        def watch(made: recorder.Progress) -> None:
            bar.update(line, completed=made.kept, total=made.wanted)

        try:
            async with open_dispatcher(calls, pool) as dispatcher:
                return await recorder.record(
                    pool, tasks, gathering, dispatcher=dispatcher, watch=watch, **options
                )
        finally:
            await pool.close()


def _report(progress: recorder.Progress, header: Header, out: Path, *, json: bool) -> None:
    if json:
        print(header.model_dump_json())
        return
    open_console().print(
        f"{counted(header.responses, 'response')} to {counted(header.questions, 'question')} are in {out}; "
        f"this run spent {dollars(progress.usd)}.",
        soft_wrap=True,
    )
    _say_what_is_missing(progress)


def _say_what_is_missing(progress: recorder.Progress) -> None:
    console = open_console()
    if progress.failed:
        console.print(f"{counted(progress.failed, 'call')} failed; the same command makes them again.")
    if progress.refusal is not None:
        console.print(f"Stopped: {progress.refusal} The same command goes on from here.", soft_wrap=True)
