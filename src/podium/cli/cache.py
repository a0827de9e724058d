"""`podium cache`: shows what a response cache has, and deletes answers from it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from podium.cli.options import Flag, read_time
from podium.cli.printable import dollars, print_columns, say, shorten
from podium.cli.terminal import print_json
from podium.workers.response_cache import ResponseCache


def show(file: Path, /, *, json: Flag = False) -> int:
    """Show how many replies of each worker a response cache has, and what they cost.

    Args:
        file: The file that --cache names; a run keeps its own as responses.sqlite in its folder.
        json: Print a JSON object.
    """
    with ResponseCache(file, replay=True) as cache:
        size, workers = cache.size, cache.workers
    if json:
        print_json({"bytes": size, "workers": workers})
        return 0
    total = sum(worker.replies for worker in workers)
    paid = dollars(sum(worker.usd for worker in workers))
    say(f"{_counted(total)} in {file}, {size / 1e6:,.1f} MB, for {paid}.")
    if workers:
        head = ("worker", "replies", "cost", "oldest (UTC)", "newest (UTC)")
        rows = (
            (
                shorten(worker.worker, 40),
                f"{worker.replies:,}",
                dollars(worker.usd),
                f"{worker.oldest:%Y-%m-%d %H:%M}",
                f"{worker.newest:%Y-%m-%d %H:%M}",
            )
            for worker in workers
        )
        print_columns([head, *rows])
    return 0


def clear(file: Path, /, *, older: str | None = None) -> int:
    """Delete replies from a response cache: all of them, or the old ones.

    Args:
        file: The file that --cache names; a run keeps its own as responses.sqlite in its folder.
        older: Delete only replies stored before this time: a date, a time, or an age such as 12h or 30d.
    """
    before = None if older is None else read_time(older, datetime.now(UTC))
    with ResponseCache(file, create=False) as cache:
        deleted = cache.forget(before)
        left = cache.count
    say(f"Deleted {_counted(deleted)}; {left:,} left in {file}.", stderr=True)
    return 0


def _counted(replies: int) -> str:
    return "1 reply" if replies == 1 else f"{replies:,} replies"
