"""The registry of baselines: all planners that users can name, also of other packages.

To add a planner, write its class and its `PlannerSpec` in a file, and add a line to `_ATTRIBUTES`. Another package
adds a planner through an entry point of the group "podium.planners" that has the planner's name and names a
`PlannerSpec`. Naming a planner imports its module alone. This module writes no plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from podium.config import closest_name
from podium.errors import ConfigError
from podium.planners.baseline import BaselineContext, PlannerSpec
from podium.planners.planner import Planner
from podium.plugins import PluginGroup
from podium.types import Profile

if TYPE_CHECKING:
    from podium.planners.answer_matrix import AnswerMatrix

_INSTALLED = PluginGroup[PlannerSpec]("podium.planners", "planner", PlannerSpec)
_ATTRIBUTES: Mapping[str, str] = {
    "single": "voting:SINGLE",
    "self-consistency": "voting:SELF_CONSISTENCY",
    "committee": "voting:COMMITTEE",
    "cascade": "cascade:CASCADE",
    "escalation": "cascade:ESCALATION",
    "weighted-vote": "voting:WEIGHTED_VOTE",
    "best-of-n": "judged:BEST_OF_N",
    "universal-self-consistency": "judged:UNIVERSAL_SELF_CONSISTENCY",
    "self-reflection": "reflection:BASELINE",
    "mixture-of-agents": "mixture:MIXTURE",
    "fusion": "mixture:FUSION",
    "self-fusion": "mixture:SELF_FUSION",
    "by-ratings": "rating_router:BASELINE",
    "constant": "controls:CONSTANT",
    "random": "controls:RANDOM",
}
"""The module and the attribute of each of Podium's own baselines, by name, in the order of all lists. A module is
imported when one of its baselines is named, so that a question to one worker loads no other planner."""


@cache
def _own_baseline(name: str) -> PlannerSpec:
    module, _, attribute = _ATTRIBUTES[name].partition(":")
    baseline: PlannerSpec = getattr(import_module(f"podium.planners.{module}"), attribute)
    return baseline


def own_baselines() -> dict[str, PlannerSpec]:
    """Podium's own baselines, by name."""
    return {name: _own_baseline(name) for name in _ATTRIBUTES}


def find_baseline(name: str) -> tuple[PlannerSpec, str] | None:
    """The baseline that `name` refers to, of Podium or of an installed package, and its argument. None if there is none
    of this name.

    Raises:
        ConfigError: an installed package has a planner of this name that cannot be used.
    """
    kind, colon, argument = name.partition(":")
    baseline = _own_baseline(kind) if kind in _ATTRIBUTES else _installed(kind)
    if baseline is None or (colon and ":" not in baseline.syntax):
        return None
    return baseline, argument


def known_baselines() -> dict[str, PlannerSpec]:
    """Podium's baselines and those of installed packages, by name.

    Raises:
        ConfigError: an entry point cannot be loaded, is no `PlannerSpec` of its name, or takes a name that is in use.
    """
    known = own_baselines()
    for name in _INSTALLED.names:
        if name in known or name == "conductor":
            raise _INSTALLED.refusal(name, "has a name that is taken")
        if (baseline := _installed(name)) is not None:
            known[name] = baseline
    return known


def _installed(name: str) -> PlannerSpec | None:
    """The baseline of another package, or None if there is none. Its module alone is imported."""
    baseline = _INSTALLED.find(name)
    if baseline is not None and baseline.name != name:
        raise _INSTALLED.refusal(
            name, f"is the planner {baseline.name!r} and needs an entry point of that name"
        )
    return baseline


def baseline_syntaxes() -> tuple[str, ...]:
    """The syntax of each known baseline."""
    return tuple(baseline.syntax for baseline in known_baselines().values())


def open_baseline(
    name: str,
    pool: Sequence[Profile],
    *,
    seed: str = "0",
    scored: AnswerMatrix | None = None,
    recorded: bool = False,
) -> Planner:
    """Open the planner that `name` refers to, for the workers of `pool`.

    Args:
        seed: seeds random plans.
        scored: answers from which planners learn that need some.
        recorded: whether workers of the pool give recorded answers to the bare question, whatever they are shown.

    Raises:
        ConfigError: the syntax, the worker or the file is not known, and the message names the nearest known one; or
            the planner needs what is missing here.
    """
    named = find_baseline(name)
    if named is None:
        syntax_of = {syntax.partition(":")[0]: syntax for syntax in baseline_syntaxes()}
        meant = closest_name(name.partition(":")[0], syntax_of)
        remedy = f"did you mean {syntax_of[meant]}?" if meant else f"known: {', '.join(syntax_of.values())}."
        raise ConfigError(f"There is no baseline {name!r}; {remedy}")
    baseline, _ = named
    if baseline.learns and scored is None:
        raise ConfigError(
            f"The planner {name!r} learns from workers' answers to other questions, and there are none here: "
            "compare it with podium eval, on tasks that have training questions."
        )
    if recorded and not baseline.on_recordings:
        others = ", ".join(other.name for other in known_baselines().values() if other.replays_anywhere)
        raise ConfigError(
            f"The planner {name!r} gives workers more than the bare question, and this pool's recording has no answers "
            f"to that; use a pool of live workers, or one of these planners: {others}."
        )
    return baseline.open(BaselineContext(name, baseline.syntax, pool, seed, scored))
