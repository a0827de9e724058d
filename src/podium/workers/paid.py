"""Which workers are asked for real. Knows the kinds that are not: tools of ours, and what is simulated or recorded."""

from __future__ import annotations

from collections.abc import Iterable

from podium.workers.base import Worker


def real_workers(workers: Iterable[Worker]) -> list[Worker]:
    """Those that may cost what their price says, in order: dollars of simulated and recorded ones are only told."""
    from podium.workers.calculator import CalculatorWorker  # noqa: PLC0415
    from podium.workers.code import CodeWorker  # noqa: PLC0415
    from podium.workers.replay import ReplayWorker  # noqa: PLC0415
    from podium.workers.scripted import ScriptedWorker  # noqa: PLC0415
    from podium.workers.specialist import Specialist  # noqa: PLC0415
    from podium.workers.vote import VoteWorker  # noqa: PLC0415

    unpaid = Specialist, ScriptedWorker, ReplayWorker, VoteWorker, CalculatorWorker, CodeWorker
    # A team knows by itself whether anybody in it is asked for real.
    return [w for w in workers if not isinstance(w, unpaid) and not getattr(w, "simulated", False)]


def asks_for_real(workers: Iterable[Worker]) -> bool:
    """Whether any of them is a real one."""
    return bool(real_workers(workers))
