"""`podium study` says whether a team pays on the user's questions (preset `team`) or traffic (`shadow`), and which of
many workers make the best team (`compose`).

The verb opens the questions that the options name. `study_run` and `compose` do the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from podium.cli.compose import (
    DEFAULT_COMPOSE,
    ComposeOptions,
    compose,
    is_address,
    write_candidates,
)
from podium.cli.study_run import DEFAULT_STUDY, StudyOptions, run_study
from podium.cli.team_file import find_team
from podium.cli.team_options import Overrides
from podium.errors import UsageError
from podium.evals.study.candidates import CompositionRun
from podium.evals.study.questions import load_study_questions, questions_of_traces
from podium.evals.study.study_run import StudyRun
from podium.evals.study.study_settings import StudySettings
from podium.sqlite_files import check_is_file
from podium.store import read_traces
from podium.team.team_file import open_pool

Preset = Annotated[
    Literal["team", "shadow", "compose"],
    Parameter(
        help="team: whether a team pays on your questions. shadow: the same on a share of your traffic. compose: which "
        "of many candidates cover your questions within the budget."
    ),
]


@Parameter(name="*", group="Preset shadow")
@dataclass(frozen=True)
class ShadowOptions:
    """Which traffic is studied."""

    traces: Path | None = None
    """The SQLite store of traces; it is only read. Default: the team's."""
    share: float = 0.1
    """The share of the different stored questions, above 0 and at most 1."""


def study(
    *keys: Overrides,
    preset: Preset = "team",
    tasks: str | None = None,
    split: str | None = None,
    questions: int | None = None,
    run: Path | None = None,
    options: StudyOptions = DEFAULT_STUDY,
    traffic: ShadowOptions = ShadowOptions(),
    candidates: ComposeOptions = DEFAULT_COMPOSE,
) -> int:
    """Find out whether a team pays on your questions. The same command goes on with a study that was stopped.

    Args:
        tasks: Your questions: a table (NAME.csv, NAME.jsonl) with the columns question and answer, a task file or set,
            or a recording. Without the column answer, name a --judge; else agreement between workers counts. For
            shadow, the stored questions are taken.
        split: Use this split alone. Default: all questions; the study divides them itself.
        questions: The most questions. Default: all; of generated questions 300.
        run: The folder of the study: its answers, report and settings files. Default: the preset, or study.
    """
    _refuse_unread_options(preset, options.settings, traffic, candidates)
    options.settings.check()
    if questions is not None and questions < 1:
        raise UsageError(f"--questions {questions}: ask for at least 1.")
    folder = run or Path("study" if preset == "team" else preset)
    if preset == "shadow":
        if tasks is not None or split is not None:
            raise UsageError("--preset shadow takes stored questions; leave --tasks and --split out.")
        return _shadow(keys, traffic, questions, folder, options)
    if tasks is None:
        raise UsageError("No questions are named; give a task set, a table or a recording with --tasks.")
    if preset == "compose":
        candidates.check(options.team)
        if is_address(options.team.pool):
            pool = write_candidates(str(options.team.pool), candidates.key_env, folder)
            options = replace(options, team=replace(options.team, pool=pool))
    team = find_team(options.team, keys).read()
    workers = open_pool(team, rated=False)
    study_questions = load_study_questions(
        tasks, split=split, size=questions, seed=options.settings.seed, pool=workers
    )
    if preset == "compose":
        composition = CompositionRun(
            team, workers, study_questions, options.settings, folder, candidates.workers
        )
        return compose(composition, options)
    made_of = {"tasks": tasks, "split": split, "seed": options.settings.seed, "questions": questions}
    return run_study(StudyRun(team, workers, study_questions, options.settings, folder), options, made_of)


def _refuse_unread_options(
    preset: Preset, settings: StudySettings, traffic: ShadowOptions, candidates: ComposeOptions
) -> None:
    """Refuse the options that the preset would not read."""
    if preset != "shadow" and (names := _changed(traffic)):
        raise UsageError(f"--{names[0]} is an option of --preset shadow; leave it out.")
    if preset != "compose" and (names := _changed(candidates)):
        raise UsageError(f"--{names[0]} is an option of --preset compose; leave it out.")
    if preset == "compose" and (names := _changed(settings, but=("judge", "concurrency", "seed"))):
        raise UsageError(f"--preset compose does not read --{names[0]}; leave it out.")


def _changed(options: ShadowOptions | ComposeOptions | StudySettings, but: Collection[str] = ()) -> list[str]:
    """The names of the options that are not at their defaults."""
    return [
        field.name.replace("_", "-")
        for field in fields(options)
        if field.name not in but and getattr(options, field.name) != field.default
    ]


def _shadow(
    keys: tuple[str, ...], traffic: ShadowOptions, questions: int | None, run: Path, options: StudyOptions
) -> int:
    """Ask every worker the questions of stored traces. Nothing is asked twice."""
    share = traffic.share
    if not 0 < share <= 1:
        raise UsageError(f"--share {share:g}: give a share above 0 and at most 1.")
    team = find_team(options.team, keys).read()
    named = traffic.traces or team.trace_store
    if named is None:
        raise UsageError("The team keeps no traces (store = false); name a store with --traces.")
    check_is_file(named)
    path = Path(named)
    if not path.is_file():
        raise UsageError(f"There is no trace store at {path}; name one with --traces.")
    workers = open_pool(team, rated=False)
    traces = (trace for trace in read_traces(path) if trace is not None)
    study_questions = questions_of_traces(traces, share=share, size=questions, seed=options.settings.seed)
    made_of = {"traces": str(path), "share": share, "seed": options.settings.seed, "questions": questions}
    return run_study(StudyRun(team, workers, study_questions, options.settings, run), options, made_of)
