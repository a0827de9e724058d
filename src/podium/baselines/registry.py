"""The registry of baselines: the name of each on the command line, what it needs, and the function that opens it.

To add a planner, write its class in a file and add a row to `_ROWS`. Another package adds a planner through an entry
point of the group "podium.planners" that names a `Baseline`. This module writes no plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from podium.baselines.by_ratings import ByRatings
from podium.baselines.cascade import Cascade
from podium.baselines.controls import Oracle, PlanFor, RandomPlans, read_constant
from podium.baselines.plans import position_of
from podium.baselines.voting import Committee, SelfConsistency, Single
from podium.config import closest_name
from podium.errors import ConfigError
from podium.planner import Planner
from podium.types import Profile
from podium.workers.vote import VOTE

_MOST_DIGITS = 9
"""Digits of a number in a baseline's name."""
ENTRY_POINTS = "podium.planners"
"""The group of entry points with which another package adds planners."""


@dataclass(frozen=True, slots=True)
class BaselineContext:
    """What a baseline may use when it is opened."""

    pool: Sequence[Profile]
    seed: str = "0"
    """Seeds a planner that plans at random."""
    oracle: PlanFor | None = None
    """Returns the best known plan of a question; None: the tasks do not know it."""


def _nothing(argument: str) -> tuple[str, ...]:
    return ()


def _no_rows(workers: Sequence[str]) -> Iterable[tuple[str, str]]:
    return ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """A planner that users name as NAME or NAME:ARGUMENT."""

    form: str
    """How users write it, such as "self-consistency:WORKER:SAMPLES"; without a colon it takes no argument."""
    open: Callable[[str, BaselineContext], Planner]
    """Makes the planner from the argument; `ConfigError` if the argument cannot be used."""
    needs: Callable[[str], tuple[str, ...]] = _nothing
    """Returns, from the argument, the workers that the pool must have."""
    reads_files: bool = False
    """Whether the argument names a file of this machine. Clients of a server may not use such a planner."""
    team_only: bool = False
    """Whether only the team's own settings may name it, and no client of a server."""
    needs_oracle: bool = False
    """Whether it needs `BaselineContext.oracle`. It then plans only for questions of task sets that know "
    "the plans."""
    rows: Callable[[Sequence[str]], Iterable[tuple[str, str]]] = _no_rows
    """Returns its rows in every comparison, as (label, full name), from the names of the pool's workers."""
    on_recordings: bool = True
    """Whether these rows also stand in a comparison on a recording."""

    @property
    def name(self) -> str:
        """The text before the first colon."""
        return self.form.partition(":")[0]

    @property
    def for_clients(self) -> bool:
        """Whether a client of a server may name it."""
        return not (self.reads_files or self.team_only or self.needs_oracle)


def find_baseline(name: str, known: Mapping[str, Baseline] | None = None) -> tuple[Baseline, str] | None:
    """The baseline that `name` refers to, and its argument; None: there is none of this name.

    Args:
        known: the baselines to search, by name; None: Podium's and those of installed packages.
    """
    kind, colon, argument = name.partition(":")
    baseline = (BASELINES.get(kind) or known_baselines().get(kind)) if known is None else known.get(kind)
    if baseline is None or (colon and ":" not in baseline.form):
        return None
    return baseline, argument


def known_baselines() -> Mapping[str, Baseline]:
    """Podium's baselines and those of installed packages, by name.

    Raises:
        ConfigError: an entry point cannot be loaded, is no `Baseline`, or takes a name that is in use.
    """
    known = dict(BASELINES)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            found = entry.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"The planner {entry.name!r} cannot be loaded from {entry.value}: {error}; "
                "repair or remove the package that adds it."
            ) from error
        if not isinstance(found, Baseline) or found.name in known or found.name == "conductor":
            raise ConfigError(
                f"The entry point {entry.name!r} ({entry.value}) of the group {ENTRY_POINTS!r} has to be a "
                "podium.baselines.Baseline with a name of its own."
            )
        known[found.name] = found
    return known


def baseline_forms() -> tuple[str, ...]:
    """The form of each known baseline."""
    return tuple(baseline.form for baseline in known_baselines().values())


def open_baseline(
    name: str, pool: Sequence[Profile], *, seed: str = "0", oracle: PlanFor | None = None
) -> Planner:
    """Open the planner that `name` refers to, for the workers of `pool`.

    Args:
        name: of a form in `baseline_forms`. The file of `constant:FILE` has a workflow's text with worker numbers of
            `pool`.
        seed: seeds random plans.
        oracle: returns the best known plan of a question; without it there is no "oracle".

    Raises:
        ConfigError: the form, the worker or the file is not known; the message names the nearest known one.
    """
    found = find_baseline(name)
    if found is None:
        forms = {form.partition(":")[0]: form for form in baseline_forms()}
        meant = closest_name(name.partition(":")[0], forms)
        remedy = f"did you mean {forms[meant]}?" if meant else f"known: {', '.join(forms.values())}."
        raise ConfigError(f"There is no baseline {name!r}; {remedy}")
    baseline, argument = found
    return baseline.open(argument, BaselineContext(pool, seed, oracle))


def _single(worker: str, context: BaselineContext) -> Single:
    return Single(_worker(worker, context, f"single:{worker}" if worker else "single"))


def _self_consistency(argument: str, context: BaselineContext) -> SelfConsistency:
    worker, _, samples = argument.rpartition(":")
    name = f"self-consistency:{argument}" if argument else "self-consistency"
    if not worker or not samples.isdecimal() or len(samples) > _MOST_DIGITS:
        raise ConfigError(
            f"The baseline {name!r} is not of the form self-consistency:WORKER:SAMPLES, with a number of "
            "samples."
        )
    return SelfConsistency(_worker(worker, context, name), int(samples))


def _members(argument: str) -> tuple[str, ...]:
    """The workers of "2xA+B": A twice, then B."""
    members: list[str] = []
    for part in filter(None, argument.split("+")):
        count, times, name = part.partition("x")
        repeated = bool(times and name) and count.isdecimal() and 0 < len(count) <= 2
        members += [name] * int(count) if repeated else [part]
    return tuple(members)


def _committee(argument: str, context: BaselineContext) -> Committee:
    name = f"committee:{argument}" if argument else "committee"
    return Committee(tuple(_worker(worker, context, name) for worker in _members(argument) or ("",)))


def _cascade(argument: str, context: BaselineContext) -> Cascade:
    first, _, then = argument.partition(">")
    name = f"cascade:{argument}" if argument else "cascade"
    cheap = tuple(_worker(worker, context, name) for worker in _members(first) or ("",))
    return Cascade(cheap, _worker(then, context, name))


def _needs_of_cascade(argument: str) -> tuple[str, ...]:
    first, _, then = argument.partition(">")
    return (*dict.fromkeys(_members(first)), then, VOTE)


def _by_ratings(argument: str, context: BaselineContext) -> ByRatings:
    try:
        per_usd = float(argument)
    except ValueError:
        per_usd = -1.0
    if not 0 <= per_usd < math.inf:
        raise ConfigError(
            f"The baseline 'by-ratings:{argument}' needs the accuracy that a dollar has to buy, a number "
            "from 0 on, such "
            "as by-ratings:0."
        )
    return ByRatings(per_usd)


def _constant(file: str, context: BaselineContext) -> Planner:
    if not file:
        raise ConfigError(
            "The baseline 'constant' names no file; write constant:FILE, a file with a plan's lists."
        )
    path = Path(file)
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file; check the path.")
    workers = [profile.name for profile in context.pool]
    return read_constant(path.read_text(encoding="utf-8"), workers, name=f"constant:{file}")


def _random(argument: str, context: BaselineContext) -> RandomPlans:
    return RandomPlans(seed=context.seed)


def _oracle(argument: str, context: BaselineContext) -> Oracle:
    if context.oracle is None:
        raise ConfigError("These tasks have no oracle: they do not know what a question needs.")
    return Oracle(context.oracle)


def _worker(worker: str, context: BaselineContext, name: str) -> str:
    if not worker:
        names = ", ".join(profile.name for profile in context.pool)
        raise ConfigError(f"The baseline {name!r} names no worker; write one after a colon: {names}.")
    return context.pool[position_of(worker, context.pool)].name


_ROWS = (
    Baseline("single:WORKER", _single, needs=lambda worker: (worker,)),
    Baseline(
        "self-consistency:WORKER:SAMPLES",
        _self_consistency,
        needs=lambda argument: (argument.rpartition(":")[0], VOTE),
    ),
    Baseline(
        "committee:A+B",
        _committee,
        needs=lambda argument: (*dict.fromkeys(_members(argument)), VOTE),
        team_only=True,
    ),
    # It needs a budget of two rounds.
    Baseline("cascade:A+B>C", _cascade, needs=_needs_of_cascade, team_only=True),
    Baseline("by-ratings:PER_USD", _by_ratings, team_only=True),
    Baseline("constant:FILE", _constant, reads_files=True),
    # A recording has no answers to the subtasks that random plans write.
    Baseline("random", _random, rows=lambda workers: [("Random plans", "random")], on_recordings=False),
    Baseline("oracle", _oracle, needs_oracle=True),
)
BASELINES: Mapping[str, Baseline] = {baseline.name: baseline for baseline in _ROWS}
"""Podium's own baselines by name. To add one: a row above."""
