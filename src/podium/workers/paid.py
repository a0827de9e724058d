"""Which workers are asked for real. Knows the kinds that are not: tools of ours, and what is simulated or recorded."""

from __future__ import annotations

from collections.abc import Iterable

from podium.workers.base import Worker


def asks_for_real(workers: Iterable[Worker]) -> bool:
    """Whether any of them may cost what its price says: dollars of simulated and recorded ones are only told."""
    from podium.workers.calculator import CalculatorWorker  # noqa: PLC0415
    from podium.workers.code import CodeWorker  # noqa: PLC0415
    from podium.workers.replay import ReplayWorker  # noqa: PLC0415
    from podium.workers.scripted import ScriptedWorker  # noqa: PLC0415
    from podium.workers.specialist import Specialist  # noqa: PLC0415
    from podium.workers.vote import VoteWorker  # noqa: PLC0415

    unpaid = Specialist, ScriptedWorker, ReplayWorker, VoteWorker, CalculatorWorker, CodeWorker
    return any(not isinstance(worker, unpaid) for worker in workers)
