"""The preset `compose` of a study: chooses a team from many candidates by the user's own questions, within a budget.

`podium.evals.study.candidates` asks the candidates and chooses.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from podium.cli.output_files import parent_folder
from podium.cli.printable import counted, dollars, printable, shorten
from podium.cli.progress import show_progress
from podium.cli.study_run import StudyOptions
from podium.cli.team_options import TeamOptions
from podium.cli.terminal import open_console, print_sentence
from podium.config.toml_text import toml_text
from podium.errors import UsageError, WorkerError
from podium.evals.study.candidates import (
    UNSORTED,
    Candidate,
    CandidateChoice,
    QuestionKinds,
    ask_candidates,
    order_of_tests,
)
from podium.evals.study.judging import PoolJudge
from podium.evals.study.questions import StudyQuestions
from podium.evals.study.serving_files import write_workers
from podium.evals.study.study_run import StudySettings
from podium.evals.suite.asking import open_run_dispatcher
from podium.files import lock_folder, replace_file
from podium.team.settings import TeamSettings
from podium.types import Price
from podium.workers.chat.catalogue import read_catalogue
from podium.workers.pool import Pool, pool_file
from podium.workers.ratings import Ratings
from podium.workers.redaction import read_key
from podium.workers.traits import costly_workers

TEAM_FILE, CANDIDATES = "team.toml", "candidates.toml"
"""The files in the study's folder: the team, and the pool file made from an endpoint's list of models."""
_HEADER = "# Written by podium study --preset compose.\n"
_KINDS = 6
"""The most kinds of questions; the published method has as many."""
_LONGEST_REASON = 100


@Parameter(name="*", group="Preset compose")
@dataclass(frozen=True)
class ComposeOptions:
    """How a team is chosen among the candidates: the team's workers, whose prices are known, or the models of an
    endpoint whose /models says prices, if --pool is its address."""

    workers: int | None = None
    """The most workers of the team. Default: as many as the kinds of questions need."""
    key_env: str | None = None
    """The environment variable with the endpoint's API key, where --pool is an address."""

    def check(self, team: TeamOptions) -> None:
        """Refuse what cannot be used.

        Raises:
            UsageError: there is something.
        """
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: give at least 1.")
        if self.key_env is not None and not is_address(team.pool):
            raise UsageError(f"--key-env {self.key_env}: a pool file names its keys itself; leave it out.")


DEFAULT_COMPOSE = ComposeOptions()


def is_address(pool: str | None) -> bool:
    """Whether --pool is the address of an endpoint."""
    return pool is not None and "://" in pool


def write_candidates(address: str, key_env: str | None, folder: Path) -> str:
    """Write the models of an endpoint as a pool file in a folder. Returns its name.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    key = None if key_env is None else read_key(key_env, address, where=("--key-env",))
    try:
        catalogue = asyncio.run(read_catalogue(address, key, key_env))
    except WorkerError as error:
        raise UsageError(f"{address}: its list of models cannot be read: {error}") from None
    if not catalogue.workers:
        raise UsageError(
            f"{address} lists no model with a price ({counted(catalogue.left_out, 'model')} without); write a pool "
            "file with prices instead."
        )
    if catalogue.left_out:
        left_out = counted(catalogue.left_out, "model")
        open_console(stderr=True).print(f"Left out: {left_out} without a price or without text.")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / CANDIDATES, toml_text({"worker": catalogue.workers}).encode())
    return str(folder / CANDIDATES)


def compose(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    study: StudyOptions,
    options: ComposeOptions,
    *,
    out: Path,
) -> int:
    """Test many candidates on questions, the cheapest first, and write a team of few that cover them.

    Args:
        out: the folder of the study; it gets team.toml, its ratings and the paid answers.

    Raises:
        UsageError: a number or a name that cannot be used; nothing was paid.
    """
    budget, judge, file = team.budget.run_usd, study.settings.judge, out / TEAM_FILE
    if budget is None:
        raise UsageError("--preset compose pays for tests; say with --run-budget-usd how much it may spend.")
    if not 0 < budget < float("inf"):
        raise UsageError(f"--run-budget-usd {budget:g}: give dollars above 0.")
    if not pool.answering:
        raise UsageError(f"{team.workers_file} has only tools; give candidates that answer questions.")
    if file.exists() and not file.read_bytes().startswith(_HEADER.encode()):
        raise UsageError(f"{file} exists, and no study composed it; give another --out.")
    if file.resolve() == pool_file(team.workers_file).resolve():
        raise UsageError(f"{file} is the file of the candidates; give another --out.")
    if judge is not None:
        pool.named(judge)
    elif questions.judged_by == "agreement":
        raise UsageError(
            f"{questions.name} has no column answer; add one, or name the candidate that judges answers with --judge."
        )
    kinds = QuestionKinds.of(questions.tasks, _KINDS)
    _say_plan(pool, kinds)
    if study.dry_run:
        return 0
    with parent_folder(file), lock_folder(out):
        answers, spent_usd = asyncio.run(_ask(team, pool, questions, kinds, study.settings, folder=out))
        composed = CandidateChoice.of(kinds, answers, budget, options.workers, spent_usd)
        if composed.chosen:
            tallies = {
                candidate.worker: candidate.tallies
                for candidate in answers
                if candidate.worker in composed.chosen
            }
            ratings = Ratings(clusters=kinds.clusters, workers=tallies)
            write_workers(file, pool, ratings, kept=[*composed.chosen, *pool.tools], header=_HEADER)
    if study.json:
        print(composed.model_dump_json())
    else:
        _print(composed, budget, file)
    return 0 if composed.chosen else 1


async def _ask(
    team: TeamSettings,
    pool: Pool,
    questions: StudyQuestions,
    kinds: QuestionKinds,
    settings: StudySettings,
    *,
    folder: Path,
) -> tuple[tuple[Candidate, ...], float]:
    """What the candidates answered, and the dollars that all starts have spent."""
    try:
        with open_run_dispatcher(team, pool, folder) as dispatcher:
            if settings.judge is not None:
                questions = questions.with_judge(PoolJudge(pool, settings.judge, dispatcher))
            table = questions.table(folder, team, pool, settings.concurrency)
            with show_progress() as show:
                answers = await ask_candidates(table, kinds, dispatcher, on_tested=partial(show, "Testing"))
            assert dispatcher.run_limit is not None  # A run with a budget has one.
            return answers, dispatcher.run_limit.spent_usd
    finally:
        await pool.close()


def _say_plan(pool: Pool, kinds: QuestionKinds) -> None:
    console = open_console(stderr=True)
    candidates, tests = len(order_of_tests(pool)), sum(map(len, kinds.tests.values()))
    print_sentence(
        console,
        f"{counted(candidates, 'candidate')}, {counted(len(kinds.tests), 'kind')} of questions, "
        f"{counted(tests, 'test')} each: at most {counted(candidates * tests, 'call')}.",
    )
    free = [worker.profile.name for worker in costly_workers(pool) if worker.profile.price == Price()]
    if free:
        named = f"{', '.join(free[:5])}{' and others' * (len(free) > 5)}"
        print_sentence(console, f"Counted as free, since their price is 0: {named}.")


def _print(composed: CandidateChoice, budget: float, file: Path) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("candidate")
    for name in ("tested", *map(str, range(1, len(composed.kinds) + 1)), "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("chosen", no_wrap=True)
    table.add_column("why", ratio=1)
    for row in composed.candidates:
        rights = (f"{row.tallies[kind].right:g}" if kind in row.tallies else "" for kind in composed.kinds)
        cells = (
            *(printable(row.worker), str(row.answered), *rights, dollars(row.cost_usd)),
            *("yes" * row.chosen, shorten(row.reason, _LONGEST_REASON)),
        )
        table.add_row(*map(Text, cells), style="bold" if row.chosen else None)
    console = open_console()
    console.print(table)
    say = partial(print_sentence, console)
    kinds = enumerate(composed.kinds.items(), 1)
    listed = (f"{n} {kind or UNSORTED} ({counted(tests, 'test')})" for n, (kind, tests) in kinds)
    say(f"Kinds of questions: {', '.join(listed)}.")
    left = max(0.0, budget - composed.spent_usd)
    say(f"{dollars(composed.spent_usd)} spent, {dollars(left)} of the budget left.")
    if not composed.complete:
        say(
            "The budget ended before all candidates were tested; the same command with a larger --run-budget-usd "
            "goes on."
        )
    if composed.uncovered:
        say(f"No chosen worker passed: {', '.join(kind or UNSORTED for kind in composed.uncovered)}.")
    if composed.chosen:
        say(f"Wrote {file}: {', '.join(composed.chosen)}.")
    else:
        say("No candidate was chosen, so no team was written.")
