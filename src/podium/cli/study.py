"""`podium study` and `podium shadow`: does a team pay on my questions, or on my traffic?

They open the questions that the options name. `podium.cli.study_run` does the rest, which is the same for both.
"""

from __future__ import annotations

from pathlib import Path

from podium.cli.study_run import DEFAULT_STUDY, StudyOptions, run_study
from podium.cli.team_file import find_team
from podium.cli.team_options import Keys
from podium.database import check_is_file, default_path
from podium.errors import UsageError
from podium.recordings.importers.traces import read_traces
from podium.study.questions import questions_of, questions_of_traces
from podium.team.opening import open_pool


def study(
    *keys: Keys,
    tasks: str,
    split: str | None = None,
    questions: int | None = None,
    out: Path = Path("study"),
    options: StudyOptions = DEFAULT_STUDY,
) -> int:
    """Find out whether a team pays on your questions. The same command goes on with a study that was stopped.

    Args:
        tasks: Your questions: a table (NAME.csv, NAME.jsonl) with the columns question and answer, a task file or set,
            or a recording. Without the column answer, name a --judge; else agreement between workers counts.
        split: Use this split alone. Default: all questions; the study divides them itself.
        questions: The most questions. Default: all; of generated questions 300.
        out: The folder of the study: its recording, page and settings files.
    """
    options.check()
    if questions is not None and questions < 1:
        raise UsageError(f"--questions {questions}: ask for at least 1.")
    team = find_team(options.team, keys).read()
    workers = open_pool(team, rated=False)
    found = questions_of(tasks, split=split, size=questions, seed=options.seed, pool=workers)
    made_of = {"tasks": tasks, "split": split, "seed": options.seed, "questions": questions}
    return run_study(team, workers, found, options, made_of=made_of, out=out)


def shadow(
    *keys: Keys,
    traces: Path | None = None,
    share: float = 0.1,
    questions: int | None = None,
    out: Path = Path("shadow"),
    options: StudyOptions = DEFAULT_STUDY,
) -> int:
    """Study a share of your traffic: ask every worker the questions of stored traces. Nothing is asked twice.

    Args:
        traces: The SQLite store of traces; it is only read. Default: $PODIUM_STORE, else
            ~/.local/share/podium/traces.sqlite.
        share: The share of the different stored questions, above 0 and at most 1.
        questions: The most questions. Default: all of the share.
        out: The folder of the study.
    """
    options.check()
    if not 0 < share <= 1:
        raise UsageError(f"--share {share:g}: give a share above 0 and at most 1.")
    place = traces or default_path()
    check_is_file(place)
    if not place.is_file():
        raise UsageError(f"There is no trace store at {place}; name one with --traces.")
    team = find_team(options.team, keys).read()
    workers = open_pool(team, rated=False)
    found = questions_of_traces(read_traces(place), share=share, size=questions, seed=options.seed)
    made_of = {"traces": str(place), "share": share, "seed": options.seed, "questions": questions}
    return run_study(team, workers, found, options, made_of=made_of, out=out)
