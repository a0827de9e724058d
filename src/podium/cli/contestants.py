"""Which Conductors an evaluation compares: a named one or the run's own, one beside it, at which cost sensitivity."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from podium.cli.options import AS_SHIPPED, PlannerOptions
from podium.conductor import Checkpoint
from podium.errors import UsageError
from podium.evals.compare import SECOND_CONDUCTOR


def is_named(planner: PlannerOptions) -> bool:
    """Whether a Conductor is named, and not only how much the one that there is is to save."""
    return dataclasses.replace(planner, cost_sensitivity=None) != AS_SHIPPED


def of_run(planner: PlannerOptions, run: Path | None) -> PlannerOptions:
    """The run's own policy, where it has one and no other Conductor is named."""
    if run is None or is_named(planner) or not (run / "policy").is_dir():
        return planner
    return dataclasses.replace(planner, conductor=str(run / "policy"))


def refuse_lonely(planner: PlannerOptions, beside: str | None) -> None:
    """On a recording the shipped Conductor is left out, and what is said of a Conductor is said of nobody."""
    if beside is not None:
        raise UsageError("--beside names a second Conductor; give the first with --conductor.")
    if planner.cost_sensitivity is not None:
        raise UsageError(
            "--cost-sensitivity says how much a Conductor is to save; on a recording name one with --conductor."
        )


def conductors_of(planner: PlannerOptions, beside: str | None) -> Iterator[tuple[str, PlannerOptions]]:
    """By label; of a recording the shipped one is none."""
    if is_named(planner):
        yield from _at_levels("Conductor", planner)
    if beside is not None:
        yield from _at_levels(SECOND_CONDUCTOR, second_to(beside, planner))


def second_to(beside: str, first: PlannerOptions) -> PlannerOptions:
    """The Conductor beside the first, at its level of cost sensitivity if it knows any."""
    knows = Checkpoint.read(beside).prompt.levels > 0
    return PlannerOptions(conductor=beside, cost_sensitivity=first.cost_sensitivity if knows else None)


def _at_levels(label: str, planner: PlannerOptions) -> Iterator[tuple[str, PlannerOptions]]:
    """A Conductor that knows levels of cost sensitivity at each of them, the least first, unless one is named."""
    levels: Iterable[float | None] = [planner.cost_sensitivity]
    if planner.cost_sensitivity is None and planner.conductor is not None:
        levels = range(Checkpoint.read(planner.conductor).prompt.levels) or levels
    for level in levels:
        yield called(label, level), dataclasses.replace(planner, cost_sensitivity=level)


def called(label: str, cost_sensitivity: float | None) -> str:
    return label if cost_sensitivity is None else f"{label}, cost sensitivity {cost_sensitivity:g}"
