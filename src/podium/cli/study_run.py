"""Runs a study for `podium study`: says what will be paid, asks whether to pay it, and prints what was found.

The work is `podium.evals.study`'s. Nothing is paid before the user has said yes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable, ranged
from podium.cli.progress import say_what_is_missing, show_progress
from podium.cli.team_options import RunOptions
from podium.cli.terminal import confirm, json_output, open_console, print_sentence
from podium.errors import UsageError
from podium.evals.rating import require_sklearn
from podium.evals.study.estimate import StudyEstimate
from podium.evals.study.questions import StudyQuestions
from podium.evals.study.report import HTML, MARKDOWN
from podium.evals.study.result import Study
from podium.evals.study.sentences import headline, misjudged, summary
from podium.evals.study.study_run import StudyRun
from podium.evals.study.study_settings import StudySettings
from podium.files import lock_folder


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


DEFAULT_STUDY = StudyOptions()


def run_study(study: StudyRun, options: StudyOptions, made_of: Mapping[str, object]) -> int:
    """Run the study. The same call goes on with one that was stopped.

    Args:
        made_of: where the questions come from. A folder with a study of other questions is refused.
    """
    require_sklearn()
    expected, budget_usd = study.estimate(), study.team.budget.run_usd
    if expected.paid and budget_usd is None and not options.dry_run:
        raise UsageError(
            "This study calls models that cost money; say with --run-budget-usd how much it may spend."
        )
    if options.dry_run and options.json:
        print(dumps(asdict(expected) | {"total_usd": expected.total_usd}))
        return 0
    _print_estimate(study.questions, expected, budget_usd)
    if options.dry_run:
        return 0
    _confirm(expected, options)
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
    say = partial(print_sentence, open_console(stderr=True))
    part = (
        ""
        if expected.reached == expected.questions
        else f", of which the budget reaches about {expected.reached:,}"
    )
    say(f"{questions.name}: {counted(expected.questions, 'question')}{part}.")
    paid = f"about {ranged(dollars, expected.cost_usd)}" if expected.workers_paid else "nothing is paid"
    say(f"Workers: {counted(expected.calls, 'call')}, {paid}.")
    if expected.conductor_questions:
        price = f"about {dollars(expected.conductor_usd)}" if expected.paid else "nothing is paid"
        say(
            f"Conductors: {expected.conductors} on {counted(expected.conductor_questions, 'question')} "
            f"each, {price}."
        )
    elif expected.conductor_reason:
        say(expected.conductor_reason)
    if expected.unpriced:
        say(f"Without a price in the pool file, so not counted: {', '.join(expected.unpriced)}.")
    limit = "" if budget_usd is None else f" No more than {dollars(budget_usd)} are spent."
    time = (
        "How long it takes is said once the first answers are there."
        if expected.seconds is None
        else f"About {counted(max(1, round(expected.seconds / 60)), 'minute')}."
    )
    say(f"{time}{limit}")
    for note in questions.notes:
        say(note)


def _confirm(expected: StudyEstimate, options: StudyOptions) -> None:
    """Ask before anything is paid.

    Raises:
        UsageError: the user says no, or there is no terminal to ask on.
    """
    if not expected.paid or options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nothing was paid. To go on without being asked, add --yes.")
    if not confirm("Go on?"):
        raise UsageError("Nothing was paid.")


def _print_result(result: Study, options: StudyOptions, run: Path) -> None:
    if options.json:
        print(result.model_dump_json(), file=json_output())
        return
    console = open_console()
    console.print(printable(headline(result)), style="bold", soft_wrap=True)
    for sentence in (*misjudged(result), *summary(result)):
        print_sentence(console, sentence)
    print_sentence(console, f"\nThe report: {run / HTML} and {run / MARKDOWN}")
    for file in result.files:
        print_sentence(console, f"To serve it: podium serve --team {run / file}")
