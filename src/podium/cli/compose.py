"""The preset `compose` of a study: chooses a team from many candidates by the user's own questions, within a budget.

`podium.evals.study.candidates` asks the candidates and chooses.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cyclopts import Parameter
from rich.text import Text

from podium.cli.output_files import parent_folder
from podium.cli.printable import counted, dollars, printable, say, shorten
from podium.cli.progress import show_progress
from podium.cli.team_options import TeamOptions
from podium.cli.terminal import open_console, plain_table, print_json
from podium.config.toml import toml_text
from podium.errors import UsageError, WorkerError
from podium.evals.study.candidates import UNSORTED, CandidateChoice, CompositionRun, QuestionKinds
from podium.files.atomic import lock_folder, replace_file
from podium.workers.base import costly_workers
from podium.workers.discovery.providers import read_catalogue
from podium.workers.pool import Pool
from podium.workers.redaction import read_key

CANDIDATES = "candidates.toml"
"""The file in the study's folder that is made from an endpoint's list of models."""
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
        """Raise a `UsageError` for what cannot be used."""
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"--workers {self.workers}: give at least 1.")
        if self.key_env is not None and not is_address(team.pool):
            raise UsageError(f"--key-env {self.key_env}: a team file names its keys itself; leave it out.")


def is_address(pool: str | None) -> bool:
    """Whether --pool is the address of an endpoint."""
    return pool is not None and "://" in pool


def write_candidates(address: str, key_env: str | None, folder: Path) -> str:
    """Write the models of an endpoint as a team file in a folder. Returns its name."""
    key = None if key_env is None else read_key(key_env, where=("--key-env",))
    try:
        catalogue = asyncio.run(read_catalogue(address, key, key_env))
    except WorkerError as error:
        raise UsageError(f"{address}: its list of models cannot be read: {error}") from None
    left_out = counted(len(catalogue.left_out), "model")
    if not catalogue.models:
        raise UsageError(
            f"{address} lists no model with a price ({left_out} without); write a team file with prices instead."
        )
    if catalogue.left_out:
        say(f"Left out: {left_out} without a price or without text.", stderr=True)
    folder.mkdir(parents=True, exist_ok=True)
    workers = [model.worker_table(model.id, model.about) for model in catalogue.models]
    replace_file(folder / CANDIDATES, toml_text({"worker": workers}).encode())
    return str(folder / CANDIDATES)


def compose(study: CompositionRun, *, dry_run: bool, json: bool) -> int:
    """Test the candidates and write a team; returns 1 if none was chosen."""
    study.check()
    _print_tests(study.pool, study.kinds)
    if dry_run:
        return 0
    with parent_folder(study.file), lock_folder(study.run), show_progress() as show:
        composed = asyncio.run(study.measure(partial(show, "Testing")))
    if json:
        print_json(composed.model_dump_json())
    else:
        _print(composed, study.budget_usd, study.file)
    return 0 if composed.chosen else 1


def _print_tests(pool: Pool, kinds: QuestionKinds) -> None:
    candidates, tests = len(pool.answering), sum(map(len, kinds.tests.values()))
    say(
        f"{counted(candidates, 'candidate')}, {counted(len(kinds.tests), 'kind')} of questions, "
        f"{counted(tests, 'test')} each: at most {counted(candidates * tests, 'call')}.",
        stderr=True,
    )
    free = [worker.profile.name for worker in costly_workers(pool) if worker.profile.price.is_zero]
    if free:
        named = f"{', '.join(free[:5])}{' and others' * (len(free) > 5)}"
        say(f"Counted as free, since their price is 0: {named}.", stderr=True)


def _print(composed: CandidateChoice, budget: float, file: Path) -> None:
    numbers = (f">{number}" for number in range(1, len(composed.kinds) + 1))
    table = plain_table("candidate", ">tested", *numbers, ">cost", "chosen")
    table.add_column("why", ratio=1)
    for row in composed.candidates:
        rights = (f"{row.tallies[kind].right:g}" if kind in row.tallies else "" for kind in composed.kinds)
        cells = (
            *(printable(row.worker), str(row.answered), *rights, dollars(row.cost_usd)),
            *("yes" * row.chosen, shorten(row.reason, _LONGEST_REASON)),
        )
        table.add_row(*map(Text, cells), style="bold" if row.chosen else None)
    open_console().print(table)
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
