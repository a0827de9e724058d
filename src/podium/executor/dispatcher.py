"""What the calls of all questions share: the lines to workers, the response cache, accounts of money.

One serves all orchestrators over the same workers. What it is handed stays its owner's to close.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.executor.breaker import Cooldown
from podium.executor.channel import ChannelStatus, WorkerChannel
from podium.workers.base import Worker

if TYPE_CHECKING:
    from podium.executor.cooldown import CooldownFile
    from podium.executor.ledger import SpendLimit
    from podium.workers.response_cache import ResponseCache


class Dispatcher:
    """Lines by worker's name, made when first needed.

    Args:
        cache: answers that were paid for already; None: each call is made.
        accounts: dollars that all questions share.
        resting: where other processes are told which workers rest; None: nowhere.
    """

    def __init__(
        self,
        *,
        cache: ResponseCache | None = None,
        accounts: Sequence[SpendLimit] = (),
        resting: CooldownFile | None = None,
    ) -> None:
        self.cache = cache
        self.accounts = tuple(accounts)
        self._resting = resting
        self._lines: dict[str, WorkerChannel] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def line(self, worker: Worker) -> WorkerChannel:
        """The line to `worker` on the running event loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # Waiters belong to their loop; a new `asyncio.run` starts afresh.
            self._lines, self._loop = {}, loop
        line = self._lines.get(worker.profile.name)
        if line is None:
            line = self._lines[worker.profile.name] = self._open(worker)
        return line

    @property
    def status(self) -> tuple[ChannelStatus, ...]:
        """How it stands with each worker that was called."""
        return tuple(line.status for line in self._lines.values())

    def _open(self, worker: Worker) -> WorkerChannel:
        resting = self._resting
        if resting is None or worker.identity is None:
            return WorkerChannel(worker)
        ahead = asyncio.get_running_loop().time() - time.time()

        def tell(rest: Cooldown | None) -> None:
            if rest is None:
                resting.clear(worker)
            else:
                resting.note(
                    worker,
                    since=rest.since - ahead,
                    probe_at=rest.probe_at - ahead,
                    failures=rest.failures,
                    error=rest.error,
                )

        line = WorkerChannel(worker, tell)
        known = resting.get(worker)
        if known is not None:
            line.breaker.start_open(
                Cooldown(known.since + ahead, known.probe_at + ahead, known.failures, known.error)
            )
        return line
