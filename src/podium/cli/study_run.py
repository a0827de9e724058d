"""Runs a study for `podium study`: says what will be paid, asks, decides and prints.

The work is `podium.study`'s. Nothing is paid before the user has said yes.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from json import dumps
from pathlib import Path

from cyclopts import Parameter

from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, printable, shorten
from podium.cli.team_options import CallOptions
from podium.cli.terminal import agrees, open_console, progress_bar
from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.executor.accounts import Account
from podium.executor.dispatcher import RESPONSES, SPENDING, open_dispatcher
from podium.ratings.rating import require_sklearn
from podium.rollout.run_folder import RunFolder
from podium.study.answering import AskingProgress, WorkerAnswers
from podium.study.conducting import (
    conducting,
    run_conductors,
    why_no_conductor,
)
from podium.study.crossfit import crossfit
from podium.study.decision import MARGIN, decide
from podium.study.judging import PoolJudge
from podium.study.methods import TrainingAnswers, methods_for
from podium.study.page import HTML, MARKDOWN, write_page
from podium.study.questions import StudyQuestions
from podium.study.result import RESULT, Bounds, Study
from podium.study.sentences import headline, summary
from podium.study.serving_files import TEAM, ServingFiles
from podium.study.spending import StudyCost, forecast_cost, most_samples
from podium.team.planning import first_model, pays_for_plans
from podium.team.settings import TeamSettings
from podium.types import Price
from podium.workers.pool import Pool
from podium.workers.replay import ReplayWorker
from podium.workers.traits import has_paid_workers, has_real_workers, is_tool

_CHANGEABLE = ("questions", "share", "margin", "conductor")
"""Settings with which a study may be resumed when they differ; its answers stay valid."""
_LONGEST_ERROR = 300
_CONDUCTORS = 2
"""Conductors that are really run: without ratings, and with them."""


@Parameter(name="*")
@dataclass(frozen=True)
class StudyOptions:
    """The options of `podium study`."""

    team: CallOptions = CallOptions()
    budget_usd: float | None = None
    """The most dollars of the study, over all its starts. Needed if a worker costs money."""
    samples: int = 1
    """Answers of each worker to each question. With 1, a fifth of the questions is asked twice."""
    judge: str | None = None
    """The worker of the pool that judges answers where no right answer is known."""
    conductor: str | None = None
    """The checkpoint of a trained Conductor that reads ratings, which plans every question in the end."""
    margin: float = MARGIN
    """How much accuracy a cheaper method may lose and still count as good, from 0 to 1."""
    concurrency: int = 16
    """The most calls at once."""
    seed: int = 0
    """Seeds the choice of questions and the division into folds."""
    dry_run: Flag = False
    """Say what it would cost and how long it would take, and stop."""
    yes: Flag = False
    """Pay without asking."""
    json: Flag = False
    """Print the result as one line of JSON."""

    def check(self) -> None:
        """Refuse numbers that a study cannot use.

        Raises:
            UsageError: there is one.
        """
        if self.samples < 1 or self.concurrency < 1:
            raise UsageError(
                f"--samples {self.samples}, --concurrency {self.concurrency}: give at least 1 of each."
            )
        if not 0 <= self.margin < 1:
            raise UsageError(f"--margin {self.margin:g}: give a share from 0 to 1, such as 0.02.")
        if self.budget_usd is not None and not 0 < self.budget_usd < float("inf"):
            raise UsageError(f"--budget-usd {self.budget_usd:g}: give dollars above 0.")


DEFAULT_STUDY = StudyOptions()


def run_study(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    options: StudyOptions,
    *,
    made_of: Mapping[str, object],
    out: Path,
) -> int:
    """Run the study. The same call goes on with one that was stopped.

    Args:
        out: the folder of the study.
        made_of: where the questions come from. A folder with a study of other questions is refused.
    """
    require_sklearn()
    _check_names(pool, options)
    spending = forecast_cost(
        pool,
        questions,
        samples=options.samples,
        judge=options.judge if questions.judges else None,
        conductors=_CONDUCTORS,
        conductor_price=_conductor_price(team, pool),
        no_conductor=_no_conductor(team, pool, questions, options),
        budget_usd=options.budget_usd,
        concurrency=options.concurrency,
        pays_for_plans=pays_for_plans(conducting(team), pool),
    )
    if spending.paid and options.budget_usd is None and not options.dry_run:
        raise UsageError(
            "This study calls models that cost money; say with --budget-usd how much it may spend."
        )
    if options.dry_run and options.json:
        print(dumps(asdict(spending) | {"total_usd": spending.total_usd}))
        return 0
    _print_plan(questions, spending, options)
    if options.dry_run:
        return 0
    _ask_leave(spending, options)
    configuration = {
        **made_of,
        "samples": options.samples,
        "judge": options.judge,
        "pool": [profile.model_dump(mode="json", exclude={"rating"}) for profile in pool.profiles],
        "margin": options.margin,
        "conductor": options.conductor,
    }
    RunFolder.open(out, configuration, changeable=_CHANGEABLE)
    result = asyncio.run(_measure(team, pool, questions, spending, options, out=out))
    result.save(out / RESULT)
    write_page(out, result)
    _print_result(result, options, out)
    return 0


def _check_names(pool: Pool, options: StudyOptions) -> None:
    """Refuse a judge that is a tool, more samples than were recorded, and worker names that planners cannot have.

    Raises:
        UsageError: one of these is given.
    """
    if options.judge is not None and is_tool(pool.named(options.judge)):
        raise UsageError(f"--judge {options.judge}: this worker is a tool; name a model of the pool.")
    if options.samples > most_samples(pool):
        raise UsageError(
            f"--samples {options.samples}: a recorded worker of the pool has {most_samples(pool):.0f} "
            "answers to a question at most; give no more."
        )
    odd = next((name for name in pool.names if re.search(r"[+>]|^\d+x", name)), None)
    if odd is not None:
        raise UsageError(
            f"Worker {odd!r} cannot be studied by this name: planners such as committee:A+2xB and cascade:A+B>C are "
            "named by their workers. Rename it in the pool file."
        )


def _conductor_price(team: TeamSettings, pool: Pool) -> Price:
    """What the team's Conductor costs; a checkpoint costs nothing."""
    table = team.conductor
    if table.checkpoint is not None:
        return Price()
    if table.base_url is not None:
        return table.price or Price()
    worker = first_model(pool) if table.worker is None else pool.named(table.worker)
    return Price() if worker is None else worker.profile.price


def _no_conductor(team: TeamSettings, pool: Pool, questions: StudyQuestions, options: StudyOptions) -> str:
    if questions.judged_by == "agreement" and options.judge is None:
        return "The Conductor is left out: agreement between workers cannot judge what it makes of them."
    return why_no_conductor(team, pool)


def _print_plan(questions: StudyQuestions, spending: StudyCost, options: StudyOptions) -> None:
    console = open_console(stderr=True)

    def say(sentence: str) -> None:
        console.print(printable(sentence), soft_wrap=True)

    part = (
        ""
        if spending.reached == spending.questions
        else f", of which the budget reaches about {spending.reached:,}"
    )
    say(f"{printable(questions.name)}: {counted(spending.questions, 'question')}{part}.")
    cost = (
        f"about {dollars(spending.likely_usd)} ({dollars(spending.low_usd)} to {dollars(spending.high_usd)})"
    )
    say(
        f"Workers: {counted(spending.calls, 'call')}, {cost if spending.workers_paid else 'nothing is paid'}."
    )
    if spending.conductor_questions:
        price = f"about {dollars(spending.conductor_usd)}" if spending.paid else "nothing is paid"
        say(
            f"Conductors: {spending.conductors} on {counted(spending.conductor_questions, 'question')} "
            f"each, {price}."
        )
    elif spending.conductor_reason:
        say(spending.conductor_reason)
    if spending.unpriced:
        say(f"Without a price in the pool file, so not counted: {', '.join(spending.unpriced)}.")
    limit = "" if options.budget_usd is None else f" No more than {dollars(options.budget_usd)} are spent."
    say(f"About {counted(max(1, round(spending.seconds / 60)), 'minute')}.{limit}")
    for note in questions.notes:
        say(note)


def _ask_leave(spending: StudyCost, options: StudyOptions) -> None:
    """Ask before anything is paid.

    Raises:
        UsageError: the user says no, or nobody can be asked.
    """
    if not spending.paid or options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nothing was paid. To go on without being asked, add --yes.")
    if not agrees("Go on?"):
        raise UsageError("Nothing was paid.")


async def _measure(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    spending: StudyCost,
    options: StudyOptions,
    *,
    out: Path,
) -> Study:
    limit, seed = options.budget_usd, str(options.seed)
    try:
        with open_dispatcher(
            paid_workers=has_paid_workers(pool),
            cache=team.cache or out / RESPONSES,
            replay=team.replay,
            day_usd=team.budget.day_usd,
            run_usd=limit,
            pays=spending.paid,
            run=out,
        ) as dispatcher:
            account = _account_of(dispatcher, out)
            before = 0.0 if account is None else account.spent_usd
            if options.judge is not None:
                questions = questions.judged(PoolJudge(pool, options.judge, dispatcher))
            worker_answers = WorkerAnswers(out, pool, questions)
            with progress_bar() as show:
                progress = await worker_answers.ask(
                    samples=options.samples,
                    reached=spending.reached,
                    budget_usd=None if limit is None else max(0.0, limit - spending.conductor_usd - before),
                    dispatcher=dispatcher,
                    concurrency=options.concurrency,
                    on_progress=lambda made: show("Asking", made.kept, made.wanted),
                )
                _say_what_is_missing(progress)
                known = worker_answers.read()
                conducted = await run_conductors(
                    team,
                    pool,
                    questions,
                    known,
                    count=spending.conductor_questions,
                    checkpoint=options.conductor,
                    dispatcher=dispatcher,
                    concurrency=options.concurrency,
                    seed=seed,
                    on_progress=show,
                )
            answers = known.answers
            methods = methods_for(answers, teams=questions.judged_by != "agreement")
            measured = [*crossfit(answers, methods, seed=seed), *conducted.measured]
            decision = decide(measured, margin=options.margin)
            ratings = TrainingAnswers(answers).ratings if len(answers.workers) > 1 else None
            files = ServingFiles(out, team.workers_file, pool, ratings, options.conductor)
            written = [files.write(TEAM, measured[decision.recommended])]
            if decision.cheaper not in (None, decision.recommended):
                written.append(files.write("cheaper", measured[decision.cheaper or 0]))
            return Study(
                **dict(decision),
                tasks=questions.name,
                questions=len(answers.texts),
                judged_by=questions.judged_by,
                judge=options.judge if questions.judged_by == "judge" else None,
                workers=answers.workers,
                bounds=Bounds.of(known.repeated),
                spent_usd=worker_answers.cost_usd if account is None else account.spent_usd,
                recorded=any(isinstance(worker, ReplayWorker) for worker in pool)
                or not has_real_workers(pool),
                notes=tuple(
                    filter(
                        None, (*questions.notes, *known.notes, spending.conductor_reason, *conducted.notes)
                    )
                ),
                files=tuple(written),
            )
    finally:
        await pool.close()


def _account_of(dispatcher: Dispatcher, out: Path) -> Account | None:
    """The account of the study's folder; None: nothing is paid."""
    accounts = (account for account in dispatcher.accounts if isinstance(account, Account))
    return next((account for account in accounts if account.path == out / SPENDING), None)


def _say_what_is_missing(progress: AskingProgress) -> None:
    console = open_console(stderr=True)
    for worker, error in sorted(progress.errors.items()):
        reason = shorten(error.removeprefix(f"{worker}: "), _LONGEST_ERROR)
        console.print(f"{printable(worker)}: {reason}", soft_wrap=True)
    if progress.failed:
        failed = counted(progress.failed, "call")
        console.print(f"{failed} failed; the same command makes them again.", soft_wrap=True)
    if progress.refusal is not None:
        console.print(
            f"Asking ended: {printable(progress.refusal)} The same command with a larger --budget-usd goes on.",
            soft_wrap=True,
        )


def _print_result(result: Study, options: StudyOptions, out: Path) -> None:
    if options.json:
        print(result.model_dump_json())
        return
    console = open_console()
    console.print(printable(headline(result)), style="bold", soft_wrap=True)
    for sentence in summary(result):
        console.print(printable(sentence), soft_wrap=True)
    console.print(f"\nThe page: {out / HTML} and {out / MARKDOWN}", soft_wrap=True)
    for file in result.files:
        console.print(f"To serve it: podium serve --team {out / file}", soft_wrap=True)
