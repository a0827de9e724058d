"""A `PlannerSpec`: the name of a planner on the command line, what it needs, and the function that opens it.

Each planner's file has one and `registry` lists them. The functions below read the arguments that many planners share,
and turn a workflow into a plan. Most baselines plan one round, and accept in a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium.config import suggestion
from podium.errors import ConfigError
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import Profile
from podium.workers.vote import VOTE
from podium.workflow import Acceptance, Access, Step, Workflow, render

if TYPE_CHECKING:
    from podium.planners.answer_matrix import AnswerMatrix

_MAX_DIGITS = 9

Layers = tuple[tuple[str, ...], ...]
"""Workers of the pool, by name, in each layer of a planner's argument."""


@dataclass(frozen=True, slots=True)
class BaselineContext:
    """What a baseline is opened with, and its argument as its syntax says: each method raises `ConfigError` if the
    argument is not of the form, or names a worker that the pool lacks."""

    name: str
    """The whole name of the planner as it was written, for errors."""
    syntax: str
    """How users write the name."""
    pool: Sequence[Profile]
    seed: str = "0"
    scored: AnswerMatrix | None = None
    """Answers from which a planner may learn. None if there are none."""

    @property
    def argument(self) -> str:
        """What follows the first colon of the name. "" if there is none."""
        return self.name.partition(":")[2]

    def worker(self, name: str) -> str:
        """The worker of the pool that has this name."""
        if not name:
            names = ", ".join(profile.name for profile in self.pool)
            raise ConfigError(
                f"The baseline {self.name!r} names no worker; write one after a colon: {names}."
            )
        return self.pool[worker_number(name, self.pool)].name

    def workers(self, text: str) -> tuple[str, ...]:
        """The workers of "2xA+B": A twice, then B."""
        return tuple(self.worker(name) for name in read_members(text) or ("",))

    @property
    def layers(self) -> Layers:
        """The workers of "2xA+B>C", layer by layer. A layer has one worker, unless the syntax has a plus sign there."""
        forms = self.syntax.partition(":")[2].split(">")
        layers = tuple(map(self.workers, self.argument.split(">")))
        if len(layers) != len(forms):
            raise self.malformed(".")
        for form, layer in zip(forms, layers, strict=True):
            if len(layer) > 1 and "+" not in form:
                raise self.malformed(f", with one {form}.")
        return layers

    def worker_and_count(self, remark: str) -> tuple[str, int]:
        """The worker and the number of "WORKER:COUNT". `remark` ends the sentence that refuses another form."""
        worker, _, count = self.argument.rpartition(":")
        if not worker or not count.isdecimal() or len(count) > _MAX_DIGITS:
            raise self.malformed(remark)
        return self.worker(worker), int(count)

    def malformed(self, remark: str) -> ConfigError:
        """The error of an argument that is not of the form. `remark` ends its sentence."""
        return ConfigError(f"The baseline {self.name!r} is not of the form {self.syntax}{remark}")


def _nothing(argument: object) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class PlannerSpec:
    """A planner that users name as NAME or NAME:ARGUMENT, such as `PlannerSpec("single:WORKER", open_single)`."""

    syntax: str
    """How users write the name, such as "self-consistency:WORKER:SAMPLES". Without a colon, it takes no argument.
    "WORKER" and "WORKER:COUNT" name one worker; "A+B" stands for one worker or more, and ">" between layers of them."""
    open: Callable[[BaselineContext], Planner]
    """Makes the planner. Raises `ConfigError` if the argument cannot be used."""
    votes: bool = False
    """Whether the pool's vote decides, if there is more than one answer."""
    named_workers: Callable[[str], tuple[str, ...]] | None = None
    """Returns the workers that the argument names, if the syntax is none of the above."""
    reads_files: bool = False
    """Whether the argument names a file of this machine. Clients of a server may not use such a planner."""
    team_only: bool = False
    """Whether only the team's own settings may name it, and no client of a server."""
    learns: bool = False
    """Whether the planner needs `BaselineContext.scored`."""
    check: Callable[[str], object] = _nothing
    """Checks the argument of a planner that learns, before its training questions are answered and `open` is called.
    Raises `ConfigError` if the argument cannot be used, or a package is missing. Its result is not used."""
    rows: Callable[[Sequence[str]], Iterable[tuple[str, str]]] = _nothing
    """Returns the planner's rows in every comparison, as (label, full name), from the names of the pool's workers."""
    on_recordings: bool = True
    """Whether single recorded answers can answer its plans: no step but a vote sees more than the bare question."""

    @property
    def name(self) -> str:
        """The text before the first colon."""
        return self.syntax.partition(":")[0]

    @property
    def replays_anywhere(self) -> bool:
        """Whether any pool of recorded workers can answer the planner's plans, without further files or answers."""
        return self.on_recordings and not (self.reads_files or self.learns)

    @property
    def for_clients(self) -> bool:
        """Whether a client of a server may name it."""
        return not (self.reads_files or self.team_only or self.learns)

    def needs(self, argument: str) -> tuple[str, ...]:
        """The workers that the pool must have for this argument, each once."""
        form, answers = self.syntax.partition(":")[2], list[str]()
        if self.named_workers is not None:
            answers += self.named_workers(argument)
        elif "+" in form or ">" in form:
            answers += (worker for layer in argument.split(">") for worker in read_members(layer))
        elif form.startswith("WORKER"):
            worker, _, count = argument.rpartition(":") if ":" in form else (argument, "", "1")
            answers += filter(None, [worker] if count == "1" else [worker, worker])
        votes = (VOTE,) if self.votes and len(answers) != 1 else ()
        return (*dict.fromkeys(answers), *votes)


def read_members(argument: str) -> tuple[str, ...]:
    """The workers of "2xA+B": A twice, then B. The pool need not have them."""
    members: list[str] = []
    for part in filter(None, argument.split("+")):
        count, times, name = part.partition("x")
        repeated = bool(times and name) and count.isdecimal() and 0 < len(count) <= 2
        members += [name] * int(count) if repeated else [part]
    return tuple(members)


def plan_once(request: PlanRequest, workflow: Workflow) -> Plan:
    """A plan that runs `workflow` in the first round, even with more than `max_steps` steps, and accepts in later
    rounds."""
    decision = Acceptance() if request.earlier_rounds else workflow
    return Plan(text=_rendered(decision), decision=decision)


@lru_cache(64)
def _rendered(decision: Workflow | Acceptance) -> str:
    """The text of a plan. Most baselines write the same one for each question."""
    return render(decision)


def voting_step(pool: Sequence[Profile], weights: Sequence[float] = ()) -> Step:
    """A step in which the pool's voting tool votes on all earlier answers, also on the answer of the round before. The
    votes have equal weights, or `weights` in the order of the answers.

    Raises:
        ConfigError: the pool has no such tool.
    """
    refuse_without_vote(pool)
    subtask = "Give the most frequent answer."
    if weights:
        subtask = f"Vote with the weights {', '.join(map(_decimal, weights))}."
    return Step(worker=worker_number(VOTE, pool), subtask=subtask, access=Access(all=True))


def refuse_without_vote(pool: Sequence[Profile]) -> None:
    """`ConfigError` if the pool has no voting tool."""
    if VOTE not in (profile.name for profile in pool):
        raise ConfigError(
            f"This plan votes with the pool's worker {VOTE!r}, and this pool has none: "
            f'add a [[worker]] with name = "{VOTE}" and kind = "vote" to the team file.'
        )


def _decimal(weight: float) -> str:
    """The weight without an exponent, which the voting tool cannot read."""
    return f"{weight:.6f}".rstrip("0").rstrip(".")


def worker_number(name: str, pool: Sequence[Profile]) -> int:
    """The number of the worker called `name`; `ConfigError` if the pool has none."""
    names = [profile.name for profile in pool]
    if name not in names:
        raise ConfigError(f"The pool has no worker named {name!r}; {suggestion(name, names)}")
    return names.index(name)
