"""`podium record`: records live workers' answers to a task set, so that planners can be compared on them afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.calls.call_state import RESPONSES
from podium.cli.found_team import find_team
from podium.cli.options import Flag
from podium.cli.output_files import check_recording_path, parent_folder, refuse_existing
from podium.cli.printable import counted, dollars, say
from podium.cli.progress import say_what_is_missing, show_progress
from podium.cli.questions import check_question_count
from podium.cli.team_options import Override, RunOptions
from podium.cli.terminal import print_json
from podium.errors import UsageError
from podium.evals.question_table import QuestionTable
from podium.evals.recorder import QuestionsToRecord, RecordingRun, recorded_workers
from podium.files.atomic import lock_folder
from podium.recordings import header_path, require_pyarrow, unfinished_path
from podium.team.team_file import open_pool


def record(
    out: Path,
    /,
    *overrides: Override,
    team: RunOptions = RunOptions(),
    tasks: str,
    split: str | None = None,
    questions: int = 100,
    repeats: int = 1,
    worker: Annotated[list[str] | None, Parameter(name="--worker", negative="")] = None,
    name: str | None = None,
    concurrency: int = 16,
    budget_calls: int | None = None,
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
        repeats: How many answers of each worker to each question.
        worker: A worker to record. May be given several times. Default: all that are no tools.
        name: The recording's name. Default: the file's.
        concurrency: The most calls at once.
        budget_calls: The most calls of this start, retries included.
        seed: Seeds the choice of questions and what workers draw.
        json: Print the header as one line of JSON.
    """
    check_recording_path(out)
    require_pyarrow()  # Before anything is paid.
    settings = find_team(team, overrides).read()
    if repeats < 1 or concurrency < 1:
        raise UsageError(f"--repeats {repeats}, --concurrency {concurrency}: give at least 1 of each.")
    if questions < 1:
        raise UsageError(f"--questions {questions}: ask for at least 1.")
    check_question_count(questions, tasks)
    if not unfinished_path(out).exists():
        refuse_existing((out, header_path(out)), "remove {them} to record again")
    if budget_calls is not None and budget_calls < 0:
        raise UsageError(f"--budget-calls {budget_calls}: give at least 0.")
    to_record = QuestionsToRecord.open(tasks, split, size=questions, seed=seed)
    for warning in to_record.warnings:
        say(warning, stderr=True)
    # Workers do not see ratings, and a recording must not depend on them.
    workers = recorded_workers(open_pool(settings, rated=False), worker or ())
    table = QuestionTable(
        unfinished_path(out),
        settings,
        workers,
        to_record.tasks,
        repeats=repeats,
        concurrency=concurrency,
        seed=seed,
    )
    run = RecordingRun(out, to_record, table)
    with parent_folder(table.folder / RESPONSES), lock_folder(table.folder):
        run.open_folder({"tasks": tasks, "split": split, "questions": questions})
        with show_progress() as show:
            progress, spent_usd = asyncio.run(run.ask(budget_calls, show))
        for sentence in to_record.left_out:
            say(f"Left out: {sentence}.", stderr=json)
        if not progress.kept:
            say_what_is_missing(progress, stderr=json)
            return 1
        still_missing = progress.wanted - progress.kept
        header = run.write(name or out.stem, still_missing)
    if json:
        print_json(header.model_dump_json())
    else:
        say(
            f"{counted(header.responses, 'response')} to {counted(header.questions, 'question')} are in {out}; "
            f"it cost {dollars(spent_usd)}."
        )
    say_what_is_missing(progress, stderr=json)
    return 1 if still_missing else 0
