"""The limits of workers, divided among processes that call them together.

Each process takes its share when it opens its pool, so the processes need not talk to each other before a call, and all
shares together are the limits of the pool file.
"""

from __future__ import annotations

from podium.errors import UsageError
from podium.team.team_worker import TeamWorker
from podium.types import Limits
from podium.workers.base import Worker
from podium.workers.pool import Pool, real_workers


def share_limits(pool: Pool, number: int, of: int) -> None:
    """Give the workers of a pool that was just opened their share of the limits, also those of its teams.

    Tools and scripted workers keep theirs: they run in each process anew.

    Args:
        number: of this process, from 0.
        of: processes in all.

    Raises:
        UsageError: a limit is smaller than the number of processes.
    """
    for worker in real_workers(pool):
        if isinstance(worker, TeamWorker):
            share_limits(worker.runner.pool, number, of)
        try:
            worker.limits = _share(worker, number, of)  # type: ignore[misc]
        except AttributeError:
            raise UsageError(
                f"The limits of the worker {worker.profile.name!r} cannot be divided, because its kind does not let "
                "them change: serve with --workers 1."
            ) from None


def _share(worker: Worker, number: int, of: int) -> Limits:
    limits = worker.limits
    for name, most in (("concurrency", limits.concurrency), ("rpm", limits.rpm)):
        if most is not None and most < of:
            raise UsageError(
                f"The limit {name} = {most:g} of the worker {worker.profile.name!r} cannot be divided among {of} "
                f"processes: raise it, or serve with --workers {max(1, int(most))}."
            )
    shares = {
        "concurrency": limits.concurrency // of + (number < limits.concurrency % of),
        "rpm": None if limits.rpm is None else limits.rpm / of,
        "tpm": None if limits.tpm is None else limits.tpm / of,
    }
    return limits.model_copy(update=shares)
