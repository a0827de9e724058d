"""What all calls of a team or a command share: the response cache, the accounts of dollars, the cooldowns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from podium.errors import UsageError
from podium.executor import Dispatcher
from podium.executor.accounts import UNLIMITED_USD, Account, open_day_account
from podium.executor.state_file import CooldownFile
from podium.workers.response_cache import ResponseCache

RESPONSES, SPENDING = "responses.sqlite", "spending.sqlite"
"""Names of the response cache and of the account in a run's folder."""


@contextmanager
def open_dispatcher(
    *,
    paid_workers: bool,
    cache: Path | None = None,
    replay: bool = False,
    day_usd: float | None = None,
    run_usd: float | None = None,
    pays: bool = False,
    run: Path | None = None,
    spending: Path | None = None,
) -> Iterator[Dispatcher]:
    """Open the dispatcher; its files are closed at the end.

    A run with paid workers has a cache and an account in its folder, so that a resumed run pays for no answer twice.

    Args:
        paid_workers: whether workers cost money. If none does, they repeat their answers; then a cache or an account is
            opened only if a setting names one.
        cache, replay, day_usd, run_usd: as in `TeamSettings`.
        pays: whether something else costs money, such as plans.
        run: the run's folder, made if missing.
        spending: the file in which processes share the budget of a run, where there is no folder of one.

    Raises:
        UsageError: settings that exclude each other, or a file that cannot be used.
    """
    pays = pays or paid_workers
    with ExitStack() as files:
        path = cache or (run / RESPONSES if run is not None and paid_workers else None)
        if replay and path is None:
            raise UsageError("replay answers from a response cache; name its file with cache.")
        responses = None
        if path is not None:
            responses = files.enter_context(ResponseCache(path, replay=replay))
        accounts = []
        if run_usd is not None or (run is not None and pays):
            place = spending if run is None else run / SPENDING
            limit = UNLIMITED_USD if run_usd is None else run_usd
            accounts.append(files.enter_context(closing(Account(place, "run", limit))))
        day = open_day_account(day_usd) if pays else None
        if day is not None:
            accounts.append(files.enter_context(closing(day)))
        cooldowns = files.enter_context(closing(CooldownFile()))
        yield Dispatcher(cache=responses, accounts=accounts, cooldowns=cooldowns)
