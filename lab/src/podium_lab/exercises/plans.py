"""Random plans about the made-up world: coherent, and not chosen to be good.

A thought names the parts of the question, each with a worker that claims its skill, then the steps, each with what it
finds and the plan's worker: "needs 0 proposer laws3, 1 birthplace persons0; steps 0 proposer laws3, 1 birthplace
persons7". A small model cannot count, but it copies what followed a number before. Numbers of workers stand without a
space, so that they are other tokens than those of places.

Where plans depend on the level of cost sensitivity, a thought also repeats it from the prompt, and says before the
steps which the last one is: "needs ...; Thrift 1 last 0; steps ...". So the length of a plan is decided once, beside
what it depends on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from podium.types import ANSWER_WHOLE_QUESTION
from podium.workflow import Access, Step, Workflow
from podium_lab.exercises.abilities import JOINS, PLURALS
from podium_lab.exercises.teams import ExampleTeam, Shares, claimants, skill_thought
from podium_lab.world import RELATIONS, Path, Problem
from podium_lab.world.wording import named

JOIN = "Use the results to answer."
CORRECT = "Check the answer and correct it."
_CALLED = {ANSWER_WHOLE_QUESTION: "whole", JOIN: "join", CORRECT: "check"}
_MIXED_SHARE = 0.2
"""The share of plans with some general steps, among those that follow all parts of the question."""
_ACCESS_STYLES = ("needed", "all", "random")


@dataclass(frozen=True, slots=True)
class WorldParts:
    """The parts of a question: its relations, path by path, then the join if it has one."""

    problem: Problem

    @property
    def skills(self) -> tuple[str, ...]:
        """The skill of each part."""
        known = tuple(PLURALS[field] for field in self.problem.fields)
        return known if self.problem.join == "none" else (*known, JOINS)

    def needs(self, claimed: Sequence[str]) -> str:
        """The first half of a thought: "needs 0 founder firms3, 1 birthplace persons0".

        Args:
            claimed: for each part the number of a worker, or "none".
        """
        relations = [RELATIONS[name].noun for path in self.problem.paths for name in path.relations]
        # Without a join there are as many skills as relations, and "none" is left over.
        parts = zip((*relations, self.problem.join), self.skills, strict=False)
        return skill_thought(
            [f"{index} {name} {skill}" for index, (name, skill) in enumerate(parts)], claimed, gap=""
        )


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """One step of a plan that goes by the parts of the question."""

    subtask: str
    skill: str
    reads: tuple[int, ...] = ()
    """The positions of the steps whose results it needs."""
    relations: tuple[str, ...] = ()
    """What it looks up; () for a join, a check, or the whole question."""

    @property
    def called(self) -> str:
        """What a thought calls it: its relations as in its subtask, the last one first."""
        return _CALLED.get(self.subtask) or " ".join(
            RELATIONS[name].noun for name in reversed(self.relations)
        )


def draw_world_workflow(
    rng: Random,
    problem: WorldParts,
    team: ExampleTeam,
    *,
    max_steps: int = 5,
    level: int | None = None,
    shares: Shares,
    whole: WorldParts | None = None,
    begin: int = 0,
) -> tuple[Workflow, str]:
    """Draw a valid and coherent workflow that is not chosen to be good, and its thought.

    Number of steps, workers, style of the subtasks and style of the access lists are drawn independently, as `shares`
    says. Subtasks are numbered, because a small model cannot count steps without numbers. How often a worker fits its
    step is drawn for each plan, so that plans in which all do are not rare, however long.

    Args:
        level: of cost sensitivity; at level n, some plans have n steps fewer than the question has parts, and the
            thought repeats n. With None, no plan has fewer.
        whole: all parts of the question, if `problem` has only those of one round. The thought names all of them.
        begin: the index among them of the first part of `problem`. Steps are numbered from there; "the result of step
            0" means the plan's own first step, as in access lists.
    """
    needed = len(problem.skills)
    if shares.fitting and rng.random() < shares.fitting:
        fewer = level if level and rng.random() < shares.saving else 0
        count = max(1, min(needed - fewer, max_steps))
    else:
        weights = shares.steps[:max_steps]
        (count,) = rng.choices(range(1, len(weights) + 1), weights)
    asks_whole, mixed = rng.random() < shares.whole, whole is None and rng.random() < _MIXED_SHARE
    drawn = [
        DrawnStep(ANSWER_WHOLE_QUESTION, problem.skills[min(k, needed - 1)], tuple(range(k)))
        for k in range(count)
    ]
    if not asks_whole:
        drawn = draw_steps(rng, problem.problem, count) or drawn
    if mixed and not asks_whole:
        general = (ANSWER_WHOLE_QUESTION, ANSWER_WHOLE_QUESTION, JOIN, CORRECT)
        drawn = [
            DrawnStep(rng.choice(general), step.skill, step.reads) if rng.random() < 0.4 else step
            for step in drawn
        ]
    (access,) = rng.choices(_ACCESS_STYLES, (0.5, 0.35, 0.15))
    # One worker for each skill, so that a step finds the worker that the thought names for it.
    parts = whole or problem
    claimed = dict(zip(parts.skills, claimants(parts.skills, team, rng), strict=True))
    relevant = _draw_share(rng, shares.relevant)
    workers = [_worker(rng, claimed[step.skill], team, relevant) for step in drawn]
    workflow = Workflow(
        tuple(
            Step(worker, f"{begin + position}. {step.subtask}", _access(rng, access, position, step.reads))
            for position, (step, worker) in enumerate(zip(drawn, workers, strict=True))
        )
    )
    step_texts = [
        f"{begin + position} {step.called} {step.skill}{worker}"
        for position, (step, worker) in enumerate(zip(drawn, workers, strict=True))
    ]
    needs = parts.needs([claimed[skill] for skill in parts.skills])
    length = "" if level is None else f"; Thrift {level} last {begin + len(drawn) - 1}"
    return workflow, f"{needs}{length}; steps {', '.join(step_texts)}"


def _draw_share(rng: Random, mean: float) -> float:
    """A share in [0, 1] with this mean; k draws with it all succeed with probability mean / (mean + k (1 - mean))."""
    return float(rng.random() ** (1 / mean - 1)) if mean else 0.0


def draw_steps(rng: Random, problem: Problem, count: int) -> list[DrawnStep]:
    """The parts of a problem as at most `count` steps: relations that follow each other are merged at random, and if a
    step is left over, it checks the answer. Empty: they cannot be so few."""
    joins = int(problem.join != "none")
    if count < len(problem.paths) + joins:
        return []
    relations = sum(len(path.relations) for path in problem.paths)
    cuts = [(p, end) for p, path in enumerate(problem.paths) for end in range(1, len(path.relations))]
    kept_cuts = set(rng.sample(cuts, min(len(cuts), count - joins - len(problem.paths))))
    steps: list[DrawnStep] = []
    ends: list[int] = []
    for p, path in enumerate(problem.paths):
        begin, source = 0, None
        for end in range(1, len(path.relations) + 1):
            if end == len(path.relations) or (p, end) in kept_cuts:
                steps.append(_find(path, begin, end, source))
                begin, source = end, len(steps) - 1
        ends.append(len(steps) - 1)
    if joins:
        steps.append(DrawnStep(JOIN, JOINS, tuple(ends)))
    for position in range(len(steps), min(count, relations + joins + 1)):
        steps.append(DrawnStep(CORRECT, steps[-1].skill, (position - 1,)))
    return steps


def _find(path: Path, begin: int, end: int, source: int | None) -> DrawnStep:
    """A step that follows the relations from `begin` to `end` of a path."""
    first = RELATIONS[path.relations[begin]]
    words = named(path.thing, first.field) if source is None else f"the result of step {source}"
    for name in path.relations[begin:end]:
        words = f"the {RELATIONS[name].noun} of {words}"
    reads = () if source is None else (source,)
    return DrawnStep(f"Find {words}.", PLURALS[first.field], reads, path.relations[begin:end])


def _worker(rng: Random, claimant: str, team: ExampleTeam, relevant: float) -> int:
    if rng.random() < relevant and claimant.isdecimal():
        return int(claimant)
    return rng.randrange(len(team.profiles))


def _access(rng: Random, style: str, position: int, reads: tuple[int, ...]) -> Access:
    if not position:
        return Access()
    if style == "random":
        return rng.choice((Access(), Access(all=True), Access(steps=(rng.randrange(position),))))
    if style == "all":
        return Access(all=True)
    return Access(steps=reads)
