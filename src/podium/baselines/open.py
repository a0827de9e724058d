"""Opens a baseline by the name that a command line gives it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podium.baselines.constant import read_constant
from podium.baselines.oracle import Oracle, PlanFor
from podium.baselines.plans import position_of
from podium.baselines.random_plans import RandomPlans
from podium.baselines.self_consistency import SelfConsistency
from podium.baselines.single import Single
from podium.config import nearest
from podium.errors import ConfigError
from podium.planner import Planner
from podium.types import Profile

NAMES = ("single:NAME", "self-consistency:NAME:K", "constant:FILE", "random", "oracle")
"""The forms that `open_baseline` knows."""


def open_baseline(
    name: str, pool: Sequence[Profile], *, seed: str = "0", oracle: PlanFor | None = None
) -> Planner:
    """The baseline called `name`, for the workers of `pool`.

    Args:
        name: one of `NAMES`. The file of `constant:FILE` holds a workflow's text, numbered as `pool` is.
        seed: names the randomness of random plans.
        oracle: what the tasks know of the best plan; without it there is no "oracle".

    Raises:
        ConfigError: an unknown form, worker or file, with the nearest known one.
    """
    kind, _, rest = name.partition(":")
    match kind:
        case "single":
            return Single(_worker(rest, pool, name))
        case "self-consistency":
            return _self_consistency(rest, pool, name)
        case "constant":
            return _constant(rest, pool, name)
        case "random" if not rest:
            return RandomPlans(seed=seed)
        case "oracle" if not rest:
            if oracle is None:
                raise ConfigError("These tasks have no oracle: they do not know what a question needs.")
            return Oracle(oracle)
        case _:
            kinds = {form.partition(":")[0]: form for form in NAMES}
            meant = nearest(kind, kinds)
            way_out = f"did you mean {kinds[meant]}?" if meant else f"known: {', '.join(NAMES)}."
            raise ConfigError(f"There is no baseline {name!r}; {way_out}")


def _worker(worker: str, pool: Sequence[Profile], name: str) -> str:
    if not worker:
        names = ", ".join(profile.name for profile in pool)
        raise ConfigError(f"The baseline {name!r} names no worker; write one after a colon: {names}.")
    return pool[position_of(worker, pool)].name


def _self_consistency(rest: str, pool: Sequence[Profile], name: str) -> SelfConsistency:
    worker, _, samples = rest.rpartition(":")
    if not worker or not samples.isdecimal():
        raise ConfigError(
            f"The baseline {name!r} is not of the form self-consistency:NAME:K, with K samples."
        )
    return SelfConsistency(_worker(worker, pool, name), int(samples))


def _constant(rest: str, pool: Sequence[Profile], name: str) -> Planner:
    if not rest:
        raise ConfigError(
            f"The baseline {name!r} names no file; write constant:FILE, a file with a plan's lists."
        )
    path = Path(rest)
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file; check the path.")
    return read_constant(path.read_text(encoding="utf-8"), [p.name for p in pool], name=name)
