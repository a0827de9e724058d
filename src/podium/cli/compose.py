"""`podium study --preset compose`: chooses a team from many candidates by the user's own questions, within a budget.

`podium.study.candidate_tests` asks the candidates, and `podium.study.composition` chooses. `compose_files` reads and
writes the files.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from podium.cli.compose_files import check_out, open_candidates, write_pool
from podium.cli.output_files import parent_folder
from podium.cli.printable import counted, dollars, printable, shorten
from podium.cli.study_run import StudyOptions
from podium.cli.terminal import open_console
from podium.errors import UsageError
from podium.executor.accounts import Account
from podium.executor.dispatcher import RESPONSES, open_dispatcher
from podium.study.candidate_tests import CandidateAnswers, Kinds, ask_candidates, cheapest_first
from podium.study.composition import UNSORTED, CandidateOutcome, choose
from podium.study.judging import PoolJudge
from podium.study.questions import StudyQuestions, questions_of
from podium.types import Price
from podium.workers.pool import Pool, has_paid_workers, real_workers
from podium.workers.ratings import Ratings

TEAM_FILE = "team.toml"
"""Its name in the study's folder."""
_KINDS = 6
"""The most kinds of questions; the published method has as many."""
_LONGEST_REASON = 100


@dataclass(frozen=True)
class _Composed:
    """What one start of the command found."""

    kinds: Kinds
    candidates: tuple[CandidateAnswers, ...]
    choices: dict[str, CandidateOutcome]
    """The choices among the candidates that answered all tests."""
    spent_usd: float
    """The dollars that all starts have spent."""

    @property
    def chosen(self) -> tuple[str, ...]:
        return tuple(name for name, choice in self.choices.items() if choice.chosen)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The kinds that no chosen worker passed."""
        covered = {kind for one in self.candidates if one.worker in self.chosen for kind in one.result.passed}
        return tuple(kind for kind in self.kinds.tests if kind not in covered)

    def reason(self, one: CandidateAnswers) -> str:
        """Why a candidate was chosen or not."""
        if one.failure is not None:
            return f"broken: {one.failure.removeprefix(f'{one.worker}: ')}"
        if one.refusal is not None:
            return "the budget ended before its tests did"
        return self.choices[one.worker].reason


@Parameter(name="*", group="Preset compose")
@dataclass(frozen=True)
class ComposeOptions:
    """How a team is chosen among the candidates, which --pool names: a pool file with prices, or the address of an
    endpoint whose /models says prices."""

    workers: int | None = None
    """The most workers of the team. Default: as many as the kinds of questions need."""
    key_env: str | None = None
    """The environment variable with the endpoint's API key, where --pool is an address."""
    kinds: int = _KINDS
    """The most kinds of similar wording that the questions are sorted into."""


DEFAULT_COMPOSE = ComposeOptions()


def compose(
    options: ComposeOptions,
    study: StudyOptions,
    tasks: str,
    *,
    split: str | None,
    questions: int | None,
    out: Path,
) -> int:
    """Test many candidates on questions, the cheapest first, and write a team of few that cover them.

    Args:
        out: the folder of the study; it gets team.toml, its ratings and the paid answers.

    Raises:
        UsageError: a number or a name that cannot be used; nothing was paid.
    """
    budget, candidates = study.budget_usd, study.team.pool or study.team.team
    if budget is None:
        raise UsageError("--preset compose pays for tests; say with --budget-usd how much it may spend.")
    if candidates is None:
        raise UsageError("No candidates are named; give a pool file or an endpoint's address with --pool.")
    if (options.workers is not None and options.workers < 1) or options.kinds < 1:
        raise UsageError("--workers and --kinds are at least 1.")
    file = out / TEAM_FILE
    check_out(file, candidates)
    with parent_folder(file):
        pool = open_candidates(candidates, options.key_env, out)
        found = _questions(tasks, pool, study, split, questions)
        kinds = Kinds.of(found.tasks, options.kinds)
        _say_plan(pool, kinds)
        if study.dry_run:
            return 0
        composed = asyncio.run(_compose(pool, found, kinds, study, budget, most=options.workers, folder=out))
        if composed.chosen:
            write_pool(file, pool, composed.chosen, _ratings(composed))
    if study.json:
        print(dumps(_as_json(composed, budget, file)))
    else:
        _print(composed, budget, file)
    return 0 if composed.chosen else 1


def _questions(
    name: str, pool: Pool, study: StudyOptions, split: str | None, questions: int | None
) -> StudyQuestions:
    if study.judge is not None:
        pool.named(study.judge)
    found = questions_of(name, split=split, size=questions, seed=study.seed, pool=pool)
    if found.judged_by == "agreement" and study.judge is None:
        raise UsageError(
            f"{name} has no column answer; add one, or name the candidate that judges answers with --judge."
        )
    return found


async def _compose(
    pool: Pool,
    questions: StudyQuestions,
    kinds: Kinds,
    study: StudyOptions,
    budget: float,
    *,
    most: int | None,
    folder: Path,
) -> _Composed:
    judge, calls = study.judge, study.team
    columns = (TextColumn("Testing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = open_console(stderr=True)
    try:
        with open_dispatcher(
            paid_workers=has_paid_workers(pool),
            cache=calls.cache or folder / RESPONSES,
            day_usd=calls.day_budget_usd,
            run_usd=budget,
            run=folder,
        ) as dispatcher:
            if judge is not None:
                judged = questions.judged(PoolJudge(pool, judge, dispatcher))
                kinds = kinds.graded_by(judged.tasks)
            with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
                line = bar.add_task("", total=len(cheapest_first(pool)))
                asked = await ask_candidates(
                    pool,
                    kinds,
                    dispatcher,
                    concurrency=study.concurrency,
                    on_tested=lambda: bar.advance(line),
                )
            account = next(a for a in dispatcher.accounts if isinstance(a, Account) and a.name == "run")
            spent_usd = account.spent_usd
    finally:
        await pool.close()
    tested = [one.result for one in asked if one.complete]
    choices = choose(tested, kinds.weights, budget, most)
    return _Composed(kinds, asked, {choice.worker: choice for choice in choices}, spent_usd)


def _ratings(composed: _Composed) -> Ratings:
    """What the chosen workers were measured at."""
    return Ratings(
        clusters=composed.kinds.clusters,
        workers={one.worker: one.tallies for one in composed.candidates if one.worker in composed.chosen},
    )


def _say_plan(pool: Pool, kinds: Kinds) -> None:
    console = open_console(stderr=True)
    candidates, tests = len(cheapest_first(pool)), sum(map(len, kinds.tests.values()))
    console.print(
        f"{counted(candidates, 'candidate')}, {counted(len(kinds.tests), 'kind')} of questions, "
        f"{counted(tests, 'test')} each: at most {counted(candidates * tests, 'call')}.",
        soft_wrap=True,
    )
    free = [worker.profile.name for worker in real_workers(pool) if worker.profile.price == Price()]
    if free:
        named = f"{', '.join(free[:5])}{' and others' * (len(free) > 5)}"
        console.print(f"Counted as free, since their price is 0: {printable(named)}.", soft_wrap=True)


def _as_json(composed: _Composed, budget: float, out: Path) -> dict[str, Any]:
    kinds = composed.kinds
    return {
        "kinds": [
            {"name": kind, "weight": kinds.weights[kind], "tests": len(tests)}
            for kind, tests in kinds.tests.items()
        ],
        "candidates": [
            {
                "worker": one.worker,
                "answered": one.answered,
                "right": {kind: tally.right for kind, tally in one.tallies.items()},
                "cost_usd": one.cost_usd,
                "chosen": one.worker in composed.chosen,
                "reason": composed.reason(one),
            }
            for one in composed.candidates
        ],
        "chosen": composed.chosen,
        "uncovered": composed.uncovered,
        "spent_usd": composed.spent_usd,
        "left_usd": max(0.0, budget - composed.spent_usd),
        "pool": str(out) if composed.chosen else None,
    }


def _print(composed: _Composed, budget: float, out: Path) -> None:
    kinds = composed.kinds
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("candidate")
    table.add_column("tested", justify="right", no_wrap=True)
    for number in range(1, len(kinds.tests) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("chosen", no_wrap=True)
    table.add_column("why", ratio=1)
    for one in composed.candidates:
        rights = (one.tallies.get(kind) for kind in kinds.tests)
        cells = [
            printable(one.worker),
            str(one.answered),
            *("" if tally is None else f"{tally.right:g}/{tally.questions}" for tally in rights),
            dollars(one.cost_usd),
            "yes" if one.worker in composed.chosen else "",
            shorten(composed.reason(one), _LONGEST_REASON),
        ]
        table.add_row(*map(Text, cells), style="bold" if one.worker in composed.chosen else None)
    console = open_console()
    console.print(table)
    numbered = (f"{number} {printable(kind or UNSORTED)}" for number, kind in enumerate(kinds.tests, 1))
    console.print(f"\nKinds of questions: {', '.join(numbered)}.", soft_wrap=True)
    left = max(0.0, budget - composed.spent_usd)
    console.print(f"{dollars(composed.spent_usd)} spent, {dollars(left)} of the budget left.", soft_wrap=True)
    if any(one.refusal for one in composed.candidates):
        console.print(
            "The budget ended before all candidates were tested; the same command with a larger --budget-usd goes on.",
            soft_wrap=True,
        )
    if composed.uncovered:
        named = ", ".join(kind or UNSORTED for kind in composed.uncovered)
        console.print(f"No chosen worker passed: {printable(named)}.", soft_wrap=True)
    if composed.chosen:
        console.print(
            f"Wrote {printable(str(out))}: {printable(', '.join(composed.chosen))}.", soft_wrap=True
        )
    else:
        console.print("No candidate was chosen, so no team was written.", soft_wrap=True)
