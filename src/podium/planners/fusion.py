"""Fusion: a panel answers in parallel, then one worker writes one answer from all of theirs.

It is a mixture of agents of two layers, under the name that gateways gave it. In self-fusion panel and judge are one
worker, whose answers differ by their seeds.
"""

from __future__ import annotations

from podium.errors import ConfigError
from podium.planners.baseline import (
    Baseline,
    BaselineContext,
    read_count,
    read_members,
    read_worker,
    read_workers,
)
from podium.planners.mixture import MixtureOfAgents

_MOST = 1000
"""Answers of one worker; as many as self-consistency takes."""


def _open_fusion(argument: str, context: BaselineContext) -> MixtureOfAgents:
    name = f"fusion:{argument}" if argument else "fusion"
    panel, judge = _split(argument, {profile.name for profile in context.pool})
    if not panel or not judge:
        raise ConfigError(f"The baseline {name!r} is not of the form {FUSION.form}, as in fusion:A+B:C.")
    layers = (read_workers(panel, context, name), (read_worker(judge, context, name),))
    return MixtureOfAgents(layers, called=name)


def _split(argument: str, pool: set[str]) -> tuple[str, str]:
    """Panel and judge. Names may have colons, so the first colon counts that has workers of the pool on both sides."""
    parts = argument.split(":")
    for position in range(1, len(parts)):
        panel, judge = ":".join(parts[:position]), ":".join(parts[position:])
        if judge in pool and pool.issuperset(read_members(panel)):
            return panel, judge
    panel, _, judge = argument.rpartition(":")
    return panel, judge


def _open_self_fusion(argument: str, context: BaselineContext) -> MixtureOfAgents:
    worker, _, written = argument.rpartition(":")
    name = f"self-fusion:{argument}" if argument else "self-fusion"
    samples = read_count(written)
    if not worker or samples is None:
        raise ConfigError(
            f"The baseline {name!r} is not of the form {SELF_FUSION.form}, as in self-fusion:A:3."
        )
    if not 2 <= samples <= _MOST:
        raise ConfigError(f"Self-fusion takes 2 to {_MOST} answers, not {samples}.")
    fused = read_worker(worker, context, name)
    return MixtureOfAgents(((fused,) * samples, (fused,)), called=name)


def _needs_of_fusion(argument: str) -> tuple[str, ...]:
    """Its workers; none where a name has a colon, since only the pool then says who is meant."""
    panel, _, judge = argument.partition(":")
    if ":" in judge:
        return ()
    return tuple(dict.fromkeys((*read_members(panel), *filter(None, (judge,)))))


FUSION = Baseline(
    "fusion:PANEL:JUDGE",
    _open_fusion,
    needs=_needs_of_fusion,
    team_only=True,
    on_recordings=False,
    examples=lambda workers: [f"fusion:2x{'+'.join(workers)}:{workers[0]}"],
)
SELF_FUSION = Baseline(
    "self-fusion:WORKER:SAMPLES",
    _open_self_fusion,
    needs=lambda argument: tuple(filter(None, (argument.rpartition(":")[0],))),
    team_only=True,
    on_recordings=False,
    examples=lambda workers: [f"self-fusion:{workers[-1]}:3"],
)
