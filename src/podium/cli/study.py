"""`podium study` says whether a team pays on the user's questions (preset `team`) or traffic (`shadow`), and which of
many workers make the best team (`compose`).

The work is `podium.evals.study`'s. Nothing is paid before the user has seen what will be paid and has said yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from podium.cli.compose import ComposeOptions, compose, is_address, write_candidates
from podium.cli.found_team import find_team
from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable, ranged, say
from podium.cli.progress import say_what_is_missing, show_progress
from podium.cli.team_options import Override, RunOptions
from podium.cli.terminal import open_console, print_json, require_yes
from podium.errors import UsageError
from podium.evals.rating import require_sklearn
from podium.evals.study.candidates import CompositionRun
from podium.evals.study.questions import StudyQuestions, load_study_questions, questions_of_traces
from podium.evals.study.report import HTML, MARKDOWN, headline, misjudged, summary
from podium.evals.study.result import Study
from podium.evals.study.study_estimate import StudyEstimate
from podium.evals.study.study_inputs import StudySettings
from podium.evals.study.study_run import StudyRun
from podium.files.atomic import lock_folder
from podium.files.locations import refuse_database_address
from podium.store import TraceStore
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


@Parameter(name="*")
@dataclass(frozen=True)
class StudyOptions:
    """The options of `podium study`."""

    team: RunOptions = RunOptions()
    settings: Annotated[StudySettings, Parameter(name="*")] = StudySettings()
    dry_run: Flag = False
    """Say what it would cost and how long it would take, and stop."""
    yes: Flag = False
    """Pay without asking."""
    json: Flag = False
    """Print the result as one line of JSON."""


def study(
    *overrides: Override,
    preset: Preset = "team",
    tasks: str | None = None,
    split: str | None = None,
    questions: int | None = None,
    run: Path | None = None,
    options: StudyOptions = StudyOptions(),
    traffic: ShadowOptions = ShadowOptions(),
    candidates: ComposeOptions = ComposeOptions(),
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
        return _shadow(overrides, traffic, questions, folder, options)
    if tasks is None:
        raise UsageError("No questions are named; give a task set, a table or a recording with --tasks.")
    if preset == "compose":
        candidates.check(options.team)
        if is_address(options.team.pool):
            pool = write_candidates(str(options.team.pool), candidates.key_env, folder)
            options = replace(options, team=replace(options.team, pool=pool))
    team = find_team(options.team, overrides).read()
    workers = open_pool(team, rated=False)
    study_questions = load_study_questions(
        tasks, split=split, size=questions, seed=options.settings.seed, pool=workers
    )
    if preset == "compose":
        composition = CompositionRun(
            team, workers, study_questions, options.settings, folder, candidates.workers
        )
        return compose(composition, dry_run=options.dry_run, json=options.json)
    made_of = {"tasks": tasks, "split": split, "seed": options.settings.seed, "questions": questions}
    return _run_study(StudyRun(team, workers, study_questions, options.settings, folder), options, made_of)


def _refuse_unread_options(
    preset: Preset, settings: StudySettings, traffic: ShadowOptions, candidates: ComposeOptions
) -> None:
    for owner, options in (("shadow", traffic), ("compose", candidates)):
        if preset != owner and (names := _changed(options)):
            raise UsageError(f"--{names[0]} is an option of --preset {owner}; leave it out.")
    if preset == "compose" and (names := _changed(settings, but=("judge", "concurrency", "seed"))):
        raise UsageError(f"--preset compose does not read --{names[0]}; leave it out.")


def _changed(options: ShadowOptions | ComposeOptions | StudySettings, but: Collection[str] = ()) -> list[str]:
    return [
        field.name.replace("_", "-")
        for field in fields(options)
        if field.name not in but and getattr(options, field.name) != field.default
    ]


def _shadow(
    overrides: tuple[str, ...],
    traffic: ShadowOptions,
    questions: int | None,
    run: Path,
    options: StudyOptions,
) -> int:
    """Ask every worker the questions of stored traces. Nothing is asked twice."""
    share = traffic.share
    if not 0 < share <= 1:
        raise UsageError(f"--share {share:g}: give a share above 0 and at most 1.")
    team = find_team(options.team, overrides).read()
    named = traffic.traces or team.trace_store
    if named is None:
        raise UsageError("The team keeps no traces (store = false); name a store with --traces.")
    refuse_database_address(named)
    path = Path(named)
    if not path.is_file():
        raise UsageError(f"There is no trace store at {path}; name one with --traces.")
    workers = open_pool(team, rated=False)
    with TraceStore(path, read_only=True) as store:
        study_questions = questions_of_traces(
            store.iterate(), share=share, size=questions, seed=options.settings.seed
        )
    made_of = {"traces": str(path), "share": share, "seed": options.settings.seed, "questions": questions}
    return _run_study(StudyRun(team, workers, study_questions, options.settings, run), options, made_of)


def _run_study(study: StudyRun, options: StudyOptions, made_of: Mapping[str, object]) -> int:
    """Run the study, or go on with one that was stopped. A folder with a study whose questions were `made_of` something
    else is refused."""
    require_sklearn()
    expected, budget_usd = study.estimate(), study.team.budget.run_usd
    if expected.paid and budget_usd is None and not options.dry_run:
        raise UsageError(
            "This study calls models that cost money; say with --run-budget-usd how much it may spend."
        )
    if options.dry_run and options.json:
        print_json(asdict(expected) | {"total_usd": expected.total_usd})
        return 0
    _print_estimate(study.questions, expected, budget_usd)
    if options.dry_run:
        return 0
    if expected.paid and not options.yes:
        require_yes("Go on?", "Nothing was paid.")
    study.open_folder(made_of)
    with lock_folder(study.run):
        result = asyncio.run(_measure(study, expected))
    _print_result(result, options, study.run)
    return 0


async def _measure(study: StudyRun, expected: StudyEstimate) -> Study:
    try:
        with show_progress() as show:
            return await study.measure(expected, on_asked=say_what_is_missing, on_progress=show)
    finally:
        await study.pool.close()


def _print_estimate(questions: StudyQuestions, expected: StudyEstimate, budget_usd: float | None) -> None:
    tell = partial(say, stderr=True)
    reached = f", of which the budget reaches about {expected.reached:,}"
    part = "" if expected.reached == expected.questions else reached
    tell(f"{questions.name}: {counted(expected.questions, 'question')}{part}.")
    paid = f"about {ranged(dollars, expected.cost_usd)}" if expected.workers_paid else "nothing is paid"
    tell(f"Workers: {counted(expected.calls, 'call')}, {paid}.")
    if expected.conductor_questions:
        price = f"about {dollars(expected.conductor_usd)}" if expected.paid else "nothing is paid"
        asked = counted(expected.conductor_questions, "question")
        tell(f"Conductors: {expected.conductors} on {asked} each, {price}.")
    elif expected.conductor_reason:
        tell(expected.conductor_reason)
    if expected.unpriced:
        tell(f"Without a price in the team file, so not counted: {', '.join(expected.unpriced)}.")
    time = "How long it takes is said once the first answers are there."
    if expected.seconds is not None:
        time = f"About {counted(max(1, round(expected.seconds / 60)), 'minute')}."
    tell(time + ("" if budget_usd is None else f" No more than {dollars(budget_usd)} are spent."))
    for note in questions.notes:
        tell(note)


def _print_result(result: Study, options: StudyOptions, run: Path) -> None:
    if options.json:
        print_json(result.model_dump_json())
        return
    open_console().print(printable(headline(result)), style="bold", soft_wrap=True)
    for sentence in (*misjudged(result), *summary(result)):
        say(sentence)
    say(f"\nThe report: {run / HTML} and {run / MARKDOWN}")
    for file in result.files:
        say(f"To serve it: podium serve --team {run / file}")
