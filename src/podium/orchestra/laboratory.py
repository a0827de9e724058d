"""The made-up world as SFT examples of a Conductor need it: teams of workers, questions, and random plans over them.

`podium.warmstart.examples` makes the examples. A policy learns from them to read a question's parts, to find who claims
to know them, and to write plans that cohere: subtasks that name a thing or an earlier step, and access lists that show
it. Which plans are good it does not learn: steps are merged, left whole, given to others and hidden at random.

A thought names the parts, each with a worker that claims its skill, then the steps, each with what it finds and the
plan's worker: "needs 0 proposer laws3, 1 birthplace persons0; steps 0 proposer laws3, 1 birthplace persons7". A small
model cannot count, but it copies what followed a number before. Numbers of workers stand without a space, so that they
are other tokens than those of places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from podium.baselines.phrases import WHOLE
from podium.conductor.checkpoint import Conducts
from podium.conductor.prompt import PromptSettings
from podium.errors import ConfigError
from podium.lab.world import FIELDS, RELATIONS, Path, Problem, made_up_words, word_question, world
from podium.lab.world.wording import lesson_question, named
from podium.orchestra.abilities import ABILITIES, JOINS, PLURALS, SHARES, Ability
from podium.orchestra.steps import truth, unknown
from podium.orchestra.working import join_working
from podium.orchestrator.team import open_pool
from podium.planner import Outcome, PlanRequest
from podium.tasks.world import HOP_SHARES, draw_problem, split_of
from podium.types import Profile, Question
from podium.warmstart.data import LaboratoryData
from podium.warmstart.examples import NAMES, ExampleTeam, PlanCase, Shares, claimants, skill_thought
from podium.workers.pool import is_tool
from podium.workflow import Acceptance, Access, Step, Workflow

SKILLS = (*PLURALS.values(), JOINS)
"""What a part of a question needs: to know a field, or to join what was found."""
PROMPT = PromptSettings(style="brief", pool="described", examples=0, levels=4, rounds=True, guided=True)
_HOP_SHARES = (0.12, 0.18, 0.2, 0.2, 0.18, 0.12)
"""Shares of lessons about questions with 1 to 6 hops: more of the long ones than the task set has."""
_LATER = 0.15
"""The share of plans that come after an earlier round."""
JOIN = "Use the results to answer."
CHECK = "Check the answer and correct it."
_CALLED = {WHOLE: "whole", JOIN: "join", CHECK: "check"}
_LOOSE = 0.3
"""The share of lessons about relations that nothing has one after the other ("the spice of the launch year"): else a
policy guesses the next relation from the one before, and misreads compositions that it never saw."""
_MIXED = 0.2
"""Of the plans that go by the parts of the question, the share with some general steps."""
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
            [f"{place} {name} {skill}" for place, (name, skill) in enumerate(parts)], claimed, gap=""
        )


@dataclass(frozen=True, slots=True)
class Part:
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


class WorldLaboratory:
    """Questions about the made-up world."""

    skills = SKILLS
    prompt = PROMPT
    conducts = Conducts(questions="the questions of world")
    spelled = made_up_words()

    def draw_team(self, rng: Random) -> ExampleTeam:
        """A synthetic team of four to eleven workers, of whom all, some or none may know what a question needs."""
        return orchestra_team([_draw_ability(rng, name) for name in rng.sample(NAMES, rng.randint(4, 11))])

    def draw_question(self, rng: Random) -> tuple[Question, WorldParts]:
        """See `Laboratory`."""
        if rng.random() >= _LOOSE:
            return _draw_question(rng, "train", _HOP_SHARES)
        while True:
            problem = _loosened(rng, draw_split_problem(rng, "train", _HOP_SHARES))
            if not problem.is_typed and split_of(problem) == "train":
                return Question(text=lesson_question(problem, world(), rng)), WorldParts(problem)

    def unseen_question(self, seed: int, index: int) -> tuple[Question, WorldParts]:
        """See `Laboratory`."""
        return _draw_question(Random(f"unseen/{seed}/{index}"), "validation", HOP_SHARES)

    def draw_plan(self, rng: Random, team: ExampleTeam, shares: Shares) -> PlanCase[WorldParts]:
        """A plan of the first round, or after a plan whose answer was right, wrong or incomplete."""
        question, problem = self.draw_question(rng)
        max_steps = rng.choice((5, 5, 5, rng.randint(2, 4)))
        prompt = PROMPT.model_copy(update={"cost_sensitivity": rng.randrange(PROMPT.levels)})
        request = PlanRequest(question, team.profiles, max_steps=max_steps, rounds=rng.choice((1, 1, 2)))
        workflow, thought = draw_world_workflow(rng, problem, team, max_steps=max_steps, shares=shares)
        if rng.random() >= _LATER or not problem.problem.is_typed:
            return PlanCase(request, problem, workflow, thought, prompt)
        answer, left = _draw_answer(rng, problem.problem)
        request = replace(request, outcomes=(Outcome(workflow, answer),), rounds=1)
        if rng.random() < 0.4:
            needs = problem.needs(claimants(problem, team, rng))
            return PlanCase(request, problem, Acceptance(), f"{needs}; steps 0", prompt)
        again, thought = draw_world_workflow(rng, left, team, max_steps=max_steps, shares=shares)
        return PlanCase(request, left, again, thought, prompt)

    def reading_text(self, problem: WorldParts) -> str:
        """See `Laboratory`."""
        lines: list[str] = []
        ends: list[str] = []
        for path in problem.problem.paths:
            words = named(path.thing, RELATIONS[path.relations[0]].field)
            for name in path.relations:
                words = f"{RELATIONS[name].noun} of {words}"
                lines.append(f"{len(lines)}: {words} = {PLURALS[RELATIONS[name].field]}")
                words = f"{len(lines) - 1}"
            ends.append(words)
        if problem.problem.join != "none":
            lines.append(f"{len(lines)}: {problem.problem.join} of {', '.join(ends)} = {JOINS}")
        return "\n".join(lines)


def draw_split_problem(rng: Random, split: str, hop_shares: Sequence[float]) -> Problem:
    """A problem of a split, with 1, 2, ... hops in these shares before the others are left out."""
    while True:
        (hops,) = rng.choices(range(1, len(hop_shares) + 1), hop_shares)
        problem = draw_problem(rng, hops, world())
        if split_of(problem) == split:
            return problem


def _draw_question(rng: Random, split: str, hop_shares: Sequence[float]) -> tuple[Question, WorldParts]:
    problem = draw_split_problem(rng, split, hop_shares)
    ask = lesson_question if split == "train" else word_question
    return Question(text=ask(problem, world(), rng)), WorldParts(problem)


def _loosened(rng: Random, problem: Problem) -> Problem:
    """The same problem with other relations after the first one of each path, whatever they are asked of. What a join
    is about stays."""
    leading = [name for name, relation in RELATIONS.items() if relation.gives in FIELDS]
    paths = []
    for path in problem.paths:
        first, *others = path.relations
        drawn = rng.choices(leading, k=len(others))
        if others:
            drawn[-1] = rng.choice(list(RELATIONS)) if problem.join in ("none", "pair") else others[-1]
        paths.append(Path(path.thing, (first, *drawn)))
    return Problem(tuple(paths), problem.join, problem.counted)


def _draw_answer(rng: Random, problem: Problem) -> tuple[str, WorldParts]:
    """An answer to the whole question, right, wrong or incomplete, and the parts that a second round may ask for: what
    an incomplete answer leaves open, or all."""
    facts = world()
    path = rng.choice(problem.paths)
    known = rng.randint(0, len(path.relations))
    if known == len(path.relations):
        told = truth(path, facts) if problem.join == "none" else join_working(problem, facts)
        if rng.random() < 0.5:
            wrong = rng.choice(sorted(set(facts.values[path.last.name].values())))
            working, marker, _ = told.partition("\nAnswer: ")
            told = f"{working}{marker}{wrong}"
        return told, WorldParts(problem)
    things = (path.thing, *path.values(facts))
    missing = unknown(RELATIONS[path.relations[known]], things[known])
    if not known or problem.join != "none":
        return missing, WorldParts(problem)
    said = truth(Path(path.thing, path.relations[:known]), facts).partition("\n")[0]
    left = Problem((Path(things[known], path.relations[known:]),))
    return f"{said} {missing}", WorldParts(left if rng.random() < 0.7 else problem)


def orchestra_team(abilities: Sequence[Ability]) -> ExampleTeam:
    """Make a team of workers."""
    profiles = tuple(Profile(name=ability.name, description=ability.profile) for ability in abilities)
    return ExampleTeam(profiles, tuple(ability.claims for ability in abilities))


def _draw_ability(rng: Random, name: str) -> Ability:
    kind = rng.random()
    if kind < 0.12:
        return Ability(name, skills=("joins",))
    hidden = rng.choice((64, 128, 128, 128, 256))
    if kind < 0.2:
        return Ability(name, dict.fromkeys(PLURALS, 1 / 3), hidden=hidden)
    fields = rng.sample(tuple(PLURALS), rng.choice((1, 2, 2, 3)))
    knows = dict.fromkeys(fields, 1.0)
    if rng.random() < 0.3:
        lesser = rng.choice([share for share in SHARES if share < 1])
        knows |= dict.fromkeys(rng.sample(fields, rng.randint(1, len(fields))), lesser)
    return Ability(
        name, knows, skills=("facts", "checks") if rng.random() < 0.1 else ("facts",), hidden=hidden
    )


def draw_world_workflow(
    rng: Random, problem: WorldParts, team: ExampleTeam, *, max_steps: int = 5, shares: Shares
) -> tuple[Workflow, str]:
    """Draw a valid and coherent workflow that is not chosen to be good, and its thought.

    Number of steps, workers, style of the subtasks and style of the access lists are drawn independently, as `shares`
    says. Subtasks are numbered, because a small model cannot count steps without numbers. How often a worker fits its
    step is drawn for each plan, so that plans in which all do are not rare, however long.
    """
    needed = len(problem.skills)
    if shares.fitting and rng.random() < shares.fitting:
        count = min(needed, max_steps)
    else:
        weights = shares.steps[:max_steps]
        (count,) = rng.choices(range(1, len(weights) + 1), weights)
    whole, mixed = rng.random() < shares.whole, rng.random() < _MIXED
    parts = [Part(WHOLE, problem.skills[min(k, needed - 1)], tuple(range(k))) for k in range(count)]
    if not whole and (drawn := draw_parts(rng, problem.problem, count)):
        parts = drawn
    if mixed and not whole:
        general = (WHOLE, WHOLE, JOIN, CHECK)
        parts = [Part(rng.choice(general), p.skill, p.reads) if rng.random() < 0.4 else p for p in parts]
    (access,) = rng.choices(_ACCESS_STYLES, (0.5, 0.35, 0.15))
    # One worker for each skill, so that a step finds the worker that the thought names for it.
    claimed = dict(zip(problem.skills, claimants(problem, team, rng), strict=True))
    relevant = _draw_share(rng, shares.relevant)
    workers = [_worker(rng, claimed[part.skill], team, relevant) for part in parts]
    workflow = Workflow(
        tuple(
            Step(worker, f"{place}. {part.subtask}", _access(rng, access, place, part.reads))
            for place, (part, worker) in enumerate(zip(parts, workers, strict=True))
        )
    )
    found = [f"{place} {part.called} {part.skill}" for place, part in enumerate(parts)]
    steps = ", ".join(f"{what}{worker}" for what, worker in zip(found, workers, strict=True))
    return workflow, f"{problem.needs([claimed[skill] for skill in problem.skills])}; steps {steps}"


def _draw_share(rng: Random, mean: float) -> float:
    """A share in [0, 1] with this mean; k draws with it all succeed with probability mean / (mean + k (1 - mean))."""
    return float(rng.random() ** (1 / mean - 1)) if mean else 0.0


def draw_parts(rng: Random, problem: Problem, count: int) -> list[Part]:
    """The parts of a problem as `count` steps: relations that follow each other are merged at random, and steps that
    are left over check the answer. Empty: they cannot be so few."""
    joins = int(problem.join != "none")
    if count < len(problem.paths) + joins:
        return []
    relations = sum(len(path.relations) for path in problem.paths)
    cuts = [(p, place) for p, path in enumerate(problem.paths) for place in range(1, len(path.relations))]
    kept = set(rng.sample(cuts, min(len(cuts), count - joins - len(problem.paths))))
    parts: list[Part] = []
    ends: list[int] = []
    for p, path in enumerate(problem.paths):
        begin, source = 0, None
        for end in range(1, len(path.relations) + 1):
            if end == len(path.relations) or (p, end) in kept:
                parts.append(_find(path, begin, end, source))
                begin, source = end, len(parts) - 1
        ends.append(len(parts) - 1)
    if joins:
        parts.append(Part(JOIN, JOINS, tuple(ends)))
    for place in range(len(parts), min(count, relations + joins + 1)):
        parts.append(Part(CHECK, parts[-1].skill, (place - 1,)))
    return parts


def _find(path: Path, begin: int, end: int, source: int | None) -> Part:
    """A step that follows the relations from `begin` to `end` of a path."""
    first = RELATIONS[path.relations[begin]]
    words = named(path.thing, first.field) if source is None else f"the result of step {source}"
    for name in path.relations[begin:end]:
        words = f"the {RELATIONS[name].noun} of {words}"
    reads = () if source is None else (source,)
    return Part(f"Find {words}.", PLURALS[first.field], reads, path.relations[begin:end])


def _worker(rng: Random, claimant: str, team: ExampleTeam, relevant: float) -> int:
    if rng.random() < relevant and claimant.isdecimal():
        return int(claimant)
    return rng.randrange(len(team.profiles))


def _access(rng: Random, style: str, place: int, reads: tuple[int, ...]) -> Access:
    if not place:
        return Access()
    if style == "random":
        return rng.choice((Access(), Access(all=True), Access(steps=(rng.randrange(place),))))
    if style == "all":
        return Access(all=True)
    return Access(steps=reads)


def open_examples(pool: str) -> LaboratoryData[WorldParts]:
    """The examples about a pool of workers of the orchestra, and about synthetic teams.

    Raises:
        ConfigError: the pool cannot be read, or has a worker that is neither of the orchestra nor a tool.
    """
    by_name = {ability.name: ability for ability in ABILITIES}
    opened = open_pool(pool)
    tools = [name for name in opened.names if is_tool(opened.named(name))]
    if strangers := [name for name in opened.names if name not in by_name and name not in tools]:
        raise ConfigError(
            f"{pool} has {strangers[0]!r}, which is no worker of the orchestra; examples about the made-up world need "
            "a pool of its workers."
        )
    claims = tuple({} if name in tools else by_name[name].claims for name in opened.names)
    return LaboratoryData(WorldLaboratory(), pool, ExampleTeam(tuple(opened.profiles), claims))
