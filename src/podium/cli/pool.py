"""`podium pool`: lists the workers of a pool, and checks that each of them answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from podium.cli.found_team import find_team
from podium.cli.options import JSONArray
from podium.cli.printable import counted, dollars, priced, printable, seconds, shorten
from podium.cli.team_options import Override, TeamOptions
from podium.cli.terminal import open_console, plain_table, print_json
from podium.errors import UsageError
from podium.team.health_check import CheckResult, check_team
from podium.team.team_file import open_pool
from podium.workers.build import UnavailableWorker
from podium.workers.pool import Pool

CHECKING = "asking each worker a small question, and the Conductor for a plan"


def list_workers(*overrides: Override, team: TeamOptions = TeamOptions(), json: JSONArray = False) -> int:
    """List the workers of a pool, as planners see them. Needs no API keys."""
    pool = open_pool(find_team(team, overrides).read(), ready=False)
    if not json:
        _print_workers(pool)
        return 0
    print_json(
        [
            worker.profile.model_dump(mode="json")
            | {"unready": worker.reason if isinstance(worker, UnavailableWorker) else None}
            for worker in pool
        ]
    )
    return 0


def check(
    *overrides: Override,
    team: TeamOptions = TeamOptions(),
    timeout: float | None = None,
    json: JSONArray = False,
) -> int:
    """Ask every worker and the Conductor one small question; return 1 if any did not answer. You pay for the answers.

    Args:
        timeout: The most seconds for each answer. Default: the worker's timeout in the team file.
    """
    if timeout is not None and not timeout > 0:
        raise UsageError(f"--timeout {timeout}: give seconds above 0.")
    settings = find_team(team, overrides).read()
    with open_console(stderr=True).status(CHECKING):
        results = asyncio.run(check_team(settings, timeout))
    if json:
        print_json(results)
    else:
        print_check_results(results)
    return 0 if all(result.answered for result in results) else 1


def _print_workers(pool: Pool) -> None:
    table = plain_table("worker", ">$ in / out", ">time")
    table.add_column("profile", ratio=1)
    for number, profile in enumerate(worker.profile for worker in pool):
        cells = (
            f"{number} {printable(profile.name)}",
            f"{profile.price.input:g} / {profile.price.output:g}" if profile.price.is_known else "",
            _seconds(profile.latency_s),
            " ".join(printable(profile.description).split()),
        )
        table.add_row(*map(Text, cells))
    console = open_console()
    console.print(table)
    for worker in pool:
        if isinstance(worker, UnavailableWorker):
            _note(console, worker.profile.name, f"not ready: {worker.reason}", "yellow")
    console.print(Text(f"\n{counted(len(pool), 'worker')}; prices in dollars per million tokens", "dim"))


def print_check_results(results: Sequence[CheckResult]) -> None:
    """Print a table of the results, and what to do about each failure."""
    table = plain_table("worker", "", ">time", ">first token", ">tokens in / out", ">cost")
    table.add_column("said")
    for result in results:
        spent, usage = result.spent, result.spent.usage
        tokens = f"{'~' * usage.estimated}{usage.input_tokens:,} / {usage.output_tokens:,}"
        table.add_row(
            Text(printable(result.worker), "bold"),
            Text("ok", "green") if result.answered else Text("failed", "red"),
            Text(seconds(result.seconds)),
            Text(_seconds(result.first_token_s)),
            Text(tokens if result.answered else ""),
            Text(priced(spent.cost_usd, spent.unpriced) if result.answered else ""),
            Text(shorten(result.text, 32) if result.answered else "", "dim"),
        )
    console = open_console()
    console.print(table)
    for result in results:
        if result.note is not None:
            _note(console, result.worker, result.note, "yellow")
        if not result.answered:
            _note(console, result.worker, " ".join(filter(None, (result.text, result.remedy))), "red")
        if result.plan_format is not None:
            _note(console, result.worker, f"is asked for plans {result.plan_format}", "dim")
    total = dollars(sum(result.spent.cost_usd for result in results))
    guessed = "; ~ estimated tokens" if any(result.spent.usage.estimated for result in results) else ""
    workers = [result for result in results if result.role == "worker"]
    answered = f"{sum(result.answered for result in workers)} of {counted(len(workers), 'worker')} answered"
    console.print(Text(f"\n{answered}; {total} spent{guessed}", "dim"))


def _note(console: Console, name: str, sentence: str, style: str) -> None:
    line = Text.assemble((f"{printable(name)}: ", f"bold {style}"), " ".join(printable(sentence).split()))
    console.print(line, soft_wrap=True)


def _seconds(duration: float | None) -> str:
    return "" if duration is None else seconds(duration)
