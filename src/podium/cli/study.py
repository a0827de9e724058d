"""`podium study` and `podium shadow`: does a team pay on my questions, or on my traffic?

They open the questions that the options name. `podium.cli.study_run` does the rest, which is the same for both.
"""

from __future__ import annotations

from pathlib import Path

from podium.cli.options import DEFAULT_CALLS, DispatchOptions, Flag, PoolName
from podium.cli.study_run import StudyOptions, run_study
from podium.errors import UsageError
from podium.orchestrator.team import open_pool
from podium.recordings.importers.traces import read_traces
from podium.study.decision import MARGIN
from podium.study.questions import questions_of, questions_of_traces
from podium.trace.store import check_is_file, default_path


def study(
    *,
    pool: PoolName = None,
    tasks: str,
    budget_usd: float | None = None,
    out: Path = Path("study"),
    split: str | None = None,
    questions: int | None = None,
    samples: int = 1,
    judge: str | None = None,
    conductor: str | None = None,
    margin: float = MARGIN,
    concurrency: int = 16,
    calls: DispatchOptions = DEFAULT_CALLS,
    seed: int = 0,
    dry_run: Flag = False,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Find out whether a team pays on your questions. The same command goes on with a study that was stopped.

    Args:
        tasks: Your questions: a table (NAME.csv, NAME.jsonl) with the columns question and answer, a task file or set,
            or a recording. Without the column answer, name a --judge; else agreement between workers counts.
        budget_usd: The most dollars of the study, over all its starts. Needed if a worker costs money.
        out: The folder of the study: its recording, page and settings files.
        split: Use this split alone. Default: all questions; the study divides them itself.
        questions: The most questions. Default: all; of embedded questions 300.
        samples: Answers of each worker to each question. With 1, a fifth of the questions is asked twice.
        judge: The worker of the pool that judges answers where no right answer is known.
        conductor: The checkpoint of a trained Conductor that reads ratings, to try over the recorded answers.
        margin: How much accuracy a cheaper method may lose and still count as good, from 0 to 1.
        concurrency: The most calls at once.
        seed: Seeds the choice of questions and the division into folds.
        dry_run: Say what it would cost and how long it would take, and stop.
        yes: Pay without asking.
        json: Print the result as one line of JSON.
    """
    options = _checked(
        StudyOptions(
            pool or "embedded",
            out,
            samples,
            judge,
            conductor,
            margin,
            budget_usd,
            concurrency,
            calls,
            dry_run,
            yes,
            json,
        )
    )
    if questions is not None and questions < 1:
        raise UsageError(f"--questions {questions}: ask for at least 1.")
    workers = open_pool(options.pool, rated=False)
    found = questions_of(tasks, split=split, size=questions, seed=seed, pool=workers)
    made_of = {"tasks": tasks, "split": split, "seed": seed, "questions": questions}
    return run_study(workers, found, options, made_of, seed=seed)


def shadow(
    *,
    pool: PoolName = None,
    traces: Path | None = None,
    share: float = 0.1,
    budget_usd: float | None = None,
    out: Path = Path("shadow"),
    questions: int | None = None,
    samples: int = 1,
    judge: str | None = None,
    conductor: str | None = None,
    margin: float = MARGIN,
    concurrency: int = 16,
    calls: DispatchOptions = DEFAULT_CALLS,
    seed: int = 0,
    dry_run: Flag = False,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Study a share of your traffic: ask every worker the questions of stored traces. Nothing is asked twice.

    Args:
        traces: The SQLite store of traces; it is only read. Default: $PODIUM_STORE, else
            ~/.local/share/podium/traces.sqlite.
        share: The share of the different stored questions, above 0 and at most 1.
        budget_usd: The most dollars of the study, over all its starts. Needed if a worker costs money.
        out: The folder of the study.
        questions: The most questions. Default: all of the share.
        samples: Answers of each worker to each question. With 1, a fifth of the questions is asked twice.
        judge: The worker of the pool that judges answers that no user judged.
        conductor: The checkpoint of a trained Conductor that reads ratings, to try over the recorded answers.
        margin: How much accuracy a cheaper method may lose and still count as good, from 0 to 1.
        concurrency: The most calls at once.
        seed: Seeds the choice of questions and the division into folds.
        dry_run: Say what it would cost and how long it would take, and stop.
        yes: Pay without asking.
        json: Print the result as one line of JSON.
    """
    options = _checked(
        StudyOptions(
            pool or "embedded",
            out,
            samples,
            judge,
            conductor,
            margin,
            budget_usd,
            concurrency,
            calls,
            dry_run,
            yes,
            json,
        )
    )
    if not 0 < share <= 1:
        raise UsageError(f"--share {share:g}: give a share above 0 and at most 1.")
    place = traces or default_path()
    check_is_file(place)
    if not place.is_file():
        raise UsageError(f"There is no trace store at {place}; name one with --traces.")
    workers = open_pool(options.pool, rated=False)
    found = questions_of_traces(read_traces(place), share=share, size=questions, seed=seed)
    made_of = {"traces": str(place), "share": share, "seed": seed, "questions": questions}
    return run_study(workers, found, options, made_of, seed=seed)


def _checked(options: StudyOptions) -> StudyOptions:
    if options.samples < 1 or options.concurrency < 1:
        raise UsageError(
            f"--samples {options.samples}, --concurrency {options.concurrency}: give at least 1 of each."
        )
    if not 0 <= options.margin < 1:
        raise UsageError(f"--margin {options.margin:g}: give a share from 0 to 1, such as 0.02.")
    if options.budget_usd is not None and not 0 < options.budget_usd < float("inf"):
        raise UsageError(f"--budget-usd {options.budget_usd:g}: give dollars above 0.")
    return options
