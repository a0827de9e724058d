"""The made-up world as SFT examples of a Conductor need it: teams of workers, questions, and random plans over them.

`podium_lab.warmstart.examples` makes them. A policy learns from them to read a question's parts, to find who claims
to know them, and to write plans that cohere: subtasks that name a thing or an earlier step, and access lists that show
it. Which plans are good it does not learn: steps are merged, left whole, given to others and hidden at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from podium.conductor.checkpoint import TrainingScope
from podium.conductor.prompt import PromptSettings
from podium.errors import ConfigError
from podium.planners.planner import EarlierRound, PlanRequest
from podium.rollout.pool_sampling import NAMES
from podium.team.team_file import open_pool
from podium.types import Profile, Question
from podium.workflow import Acceptance, Workflow
from podium_lab.exercises.abilities import ABILITIES, JOINS, PLURALS, SHARES, Ability
from podium_lab.exercises.plans import WorldParts, draw_world_workflow
from podium_lab.exercises.steps import state_fact, truth, unknown
from podium_lab.exercises.teams import ExampleTeam, Shares, claimants
from podium_lab.exercises.working import join_working
from podium_lab.world import FIELDS, RELATIONS, Path, Problem, Relation, word_question, world
from podium_lab.world.tasks import HOP_SHARES, draw_problem, split_of
from podium_lab.world.wording import lesson_question, named

SKILLS = (*PLURALS.values(), JOINS)
"""What a part of a question needs: to know a field, or to join what was found."""
PROMPT = PromptSettings(
    style="brief", pool="described", examples=0, levels=4, rounds=True, guide="plan-lists"
)
SCOPE = TrainingScope(questions="the questions of world")
"""What a policy over such questions can conduct."""
_HOP_SHARES = (0.12, 0.18, 0.2, 0.2, 0.18, 0.12)
"""Shares of lessons about questions with 1 to 6 hops: more of the long ones than the task set has."""
_LATER_ROUND_SHARE = 0.25
"""The share of plans that come after an earlier round."""
_STOPPING_SHARE = 0.7
"""The share of plans that stop where steps end, among those with fewer steps than relations and another round left."""
_MAX_STEPS = (2, 3, 3, 3, 3, 3, 4, 5)
"""The most steps of a plan of an unfinished question: mostly three."""
_FINISHED_SHARE = 0.25
"""The share of these lessons about a question that one plan answers, and whose right answer is accepted."""
_WRONG_ANSWER_SHARE = 0.3
"""The share of wrong answers among those that a next round continues from, so that each has to be read."""
_LOOSE_RELATION_SHARE = 0.3
"""The share of lessons about relations that nothing has one after the other ("the spice of the launch year"): else a
policy guesses the next relation from the one before, and misreads compositions that it never saw."""


@dataclass(frozen=True, slots=True)
class PlanCase:
    """A request, and the decision that an example shows for it."""

    request: PlanRequest
    parts: WorldParts
    """The parts of the question that are still to be answered."""
    decision: Workflow | Acceptance
    thought: str
    """The line that stands before the decision."""
    prompt: PromptSettings


def draw_team(rng: Random) -> ExampleTeam:
    """A synthetic team of four to eleven workers, of whom all, some or none may know what a question needs."""
    return orchestra_team([_draw_ability(rng, name) for name in rng.sample(NAMES, rng.randint(4, 11))])


def draw_question(rng: Random) -> tuple[Question, WorldParts]:
    """A question of the train split, and its parts. Some questions combine relations that do not fit together."""
    if rng.random() >= _LOOSE_RELATION_SHARE:
        return _draw_question(rng, "train", _HOP_SHARES)
    while True:
        problem = _with_other_relations(rng, draw_split_problem(rng, "train", _HOP_SHARES))
        if not problem.is_typed and split_of(problem) == "train":
            return Question(text=lesson_question(problem, rng)), WorldParts(problem)


def unseen_question(seed: int, index: int) -> tuple[Question, WorldParts]:
    """A question of the validation split, and its parts."""
    return _draw_question(Random(f"unseen/{seed}/{index}"), "validation", HOP_SHARES)


def draw_plan(rng: Random, team: ExampleTeam, shares: Shares) -> PlanCase:
    """A plan of the first round, or after a plan whose answer was right, wrong or incomplete."""
    if shares.unfinished and rng.random() < shares.unfinished:
        return _draw_unfinished(rng, team, shares)
    question, problem = draw_question(rng)
    max_steps = rng.choice((5, 5, 5, rng.randint(2, 4)))
    prompt = _draw_prompt(rng)
    request = PlanRequest(question, team.profiles, max_steps=max_steps, rounds_left=rng.choice((1, 2)))
    level = _stated_level(prompt, shares)
    asked, workflow, thought = _draw_round(rng, problem, team, request, level=level, shares=shares)
    if rng.random() >= _LATER_ROUND_SHARE or not problem.problem.is_typed:
        return PlanCase(request, asked, workflow, thought, prompt)
    if len(asked.skills) < len(problem.skills):
        accepts = 0.1
        answer, left = _draw_half_way(rng, problem.problem, len(asked.skills))
    else:
        accepts = 0.4
        answer, left = _draw_answer(rng, problem.problem)
    request = replace(
        request, earlier_rounds=(EarlierRound(workflow, answer),), rounds_left=rng.choice((1, 1, 2))
    )
    if rng.random() < accepts:
        return PlanCase(request, problem, Acceptance(), _acceptance_thought(problem, team, rng), prompt)
    asked, again, thought = _draw_round(rng, left, team, request, level=level, shares=shares)
    return PlanCase(request, asked, again, thought, prompt)


def _draw_unfinished(rng: Random, team: ExampleTeam, shares: Shares) -> PlanCase:
    """One round of a question about a chain with more relations than a plan has steps; now and then a question that
    one plan answers, whose answer is accepted."""
    max_steps, finished = rng.choice(_MAX_STEPS), rng.random() < _FINISHED_SHARE
    question, parts = draw_question(rng)
    while not parts.problem.is_typed or _is_too_long(parts.problem, max_steps) == finished:
        question, parts = draw_question(rng)
    prompt = _draw_prompt(rng)
    level = _stated_level(prompt, shares)
    shares = _by_relations(shares)
    request = PlanRequest(question, team.profiles, max_steps=max_steps)
    path, facts = parts.problem.paths[0], world()
    if finished:
        plan, _ = draw_world_workflow(rng, parts, team, max_steps=max_steps, level=level, shares=shares)
        answer_text = _answer(parts.problem, path)
        request = replace(
            request, earlier_rounds=(EarlierRound(plan, answer_text),), rounds_left=rng.choice((1, 1, 2))
        )
        return PlanCase(request, parts, Acceptance(), _acceptance_thought(parts, team, rng), prompt)
    begins = range(0, len(path.relations), max_steps)
    chosen, thing = rng.choice(begins), path.thing
    earlier_rounds: list[EarlierRound] = []
    for begin in begins:
        part = Path(thing, path.relations[begin : begin + max_steps])
        asked = WorldParts(Problem((part,)))
        plan, thought = draw_world_workflow(
            rng, asked, team, max_steps=max_steps, level=level, shares=shares, whole=parts, begin=begin
        )
        if begin == chosen:
            break
        (*_, thing) = part.values(facts)
        if rng.random() < _WRONG_ANSWER_SHARE:
            thing = _any_value(rng, part.last)
        earlier_rounds.append(EarlierRound(plan, state_fact(part.last, part.subject(facts), thing)))
    rounds = len(begins) - len(earlier_rounds) + rng.choice((0, 0, 1))
    return PlanCase(
        replace(request, earlier_rounds=tuple(earlier_rounds), rounds_left=rounds),
        asked,
        plan,
        thought,
        prompt,
    )


def reading_text(problem: WorldParts) -> str:
    """The parts of a question as the completion of a reading, a line for each."""
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
    return Question(text=ask(problem, rng)), WorldParts(problem)


def _with_other_relations(rng: Random, problem: Problem) -> Problem:
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


def _draw_round(
    rng: Random,
    problem: WorldParts,
    team: ExampleTeam,
    request: PlanRequest,
    *,
    level: int | None,
    shares: Shares,
) -> tuple[WorldParts, Workflow, str]:
    """A plan of one round, with the parts that it asks for and its thought.

    With more relations than steps, and if another round is left, it often stops half way: it goes relation by relation
    as far as its steps reach.
    """
    path = problem.problem.paths[0]
    too_long = _is_too_long(problem.problem, request.max_steps)
    if too_long and request.rounds_left > 1 and rng.random() < _STOPPING_SHARE:
        problem = WorldParts(Problem((Path(path.thing, path.relations[: request.max_steps]),)))
        shares = _by_relations(shares)
    drawn = draw_world_workflow(rng, problem, team, max_steps=request.max_steps, level=level, shares=shares)
    return problem, *drawn


def _draw_prompt(rng: Random) -> PromptSettings:
    """The prompt at a random level of cost sensitivity."""
    return PROMPT.model_copy(update={"cost_sensitivity": rng.randrange(PROMPT.levels)})


def _stated_level(prompt: PromptSettings, shares: Shares) -> int | None:
    """The level of cost sensitivity that a plan's thought repeats. None if no plan depends on it."""
    return prompt.cost_sensitivity if shares.saving else None


def _by_relations(shares: Shares) -> Shares:
    """The lesson of a plan that has a step for each relation."""
    return shares.model_copy(update={"whole": 0.0, "fitting": 1.0, "saving": 0.0})


def _answer(problem: Problem, path: Path) -> str:
    """The right answer to the whole problem, with what leads to it; without a join, `path` is all of it."""
    return truth(path, world()) if problem.join == "none" else join_working(problem, world())


def _any_value(rng: Random, relation: Relation) -> str:
    """A value that the relation has for some thing."""
    return rng.choice(sorted(set(world().values[relation.name].values())))


def _is_too_long(problem: Problem, max_steps: int) -> bool:
    """Whether the problem is a chain with more relations than steps."""
    return problem.join == "none" and len(problem.paths[0].relations) > max_steps


def _acceptance_thought(parts: WorldParts, team: ExampleTeam, rng: Random) -> str:
    """The thought before an acceptance."""
    return f"{parts.needs(claimants(parts.skills, team, rng))}; steps 0"


def _draw_half_way(rng: Random, problem: Problem, hops: int) -> tuple[str, WorldParts]:
    """What the last step of a plan says that goes so many hops, seldom a wrong value or that it does not know; and the
    parts for the next round: mostly those that are left."""
    facts = world()
    (path,) = problem.paths
    things = (path.thing, *path.values(facts))
    relation = RELATIONS[path.relations[hops - 1]]
    kind = rng.random()
    if kind < 0.15:
        return unknown(relation, things[hops - 1]), WorldParts(problem)
    value = things[hops] if kind < 0.85 else _any_value(rng, relation)
    remaining = Problem((Path(value, path.relations[hops:]),))
    return state_fact(relation, things[hops - 1], value), WorldParts(
        problem if rng.random() < 0.1 else remaining
    )


def _draw_answer(rng: Random, problem: Problem) -> tuple[str, WorldParts]:
    """An answer to the whole question, right, wrong or incomplete, and the parts that a second round may ask for: what
    an incomplete answer leaves open, or all. It tells the whole path, or only the last fact."""
    facts = world()
    path = rng.choice(problem.paths)
    known = rng.randint(0, len(path.relations))
    alone = rng.random() < 0.5
    if known == len(path.relations):
        answer_text = _answer(problem, path)
        if alone and problem.join == "none":
            answer_text = state_fact(path.last, path.subject(facts), path.values(facts)[-1])
        if rng.random() < 0.5:
            wrong = _any_value(rng, path.last)
            working, marker, _ = answer_text.partition("\nAnswer: ")
            answer_text = f"{working}{marker}{wrong}"
        return answer_text, WorldParts(problem)
    things = (path.thing, *path.values(facts))
    missing = unknown(RELATIONS[path.relations[known]], things[known])
    if not known or problem.join != "none":
        return missing, WorldParts(problem)
    first_fact = truth(Path(path.thing, path.relations[:known]), facts).partition("\n")[0]
    remaining = Problem((Path(things[known], path.relations[known:]),))
    return missing if alone else f"{first_fact} {missing}", WorldParts(
        remaining if rng.random() < 0.7 else problem
    )


def orchestra_team(abilities: Sequence[Ability]) -> ExampleTeam:
    """Make a team of workers."""
    profiles = tuple(Profile(name=ability.name, description=ability.profile) for ability in abilities)
    return ExampleTeam(profiles, tuple(ability.claims for ability in abilities))


def _draw_ability(rng: Random, name: str) -> Ability:
    kind = rng.random()
    if kind < 0.12:
        return Ability(name, skills=(JOINS,))
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


def known_team(pool: str) -> ExampleTeam:
    """A pool of workers of the orchestra as examples show it.

    Raises:
        ConfigError: the pool cannot be read, or has a worker that is neither of the orchestra nor a tool.
    """
    by_name = {ability.name: ability for ability in ABILITIES}
    opened = open_pool(pool)
    if strangers := [name for name in opened.names if name not in by_name and name not in opened.tools]:
        raise ConfigError(
            f"{pool} has {strangers[0]!r}, which is no worker of the orchestra; examples about the made-up world need "
            "a pool of its workers."
        )
    claims = tuple({} if name in opened.tools else by_name[name].claims for name in opened.names)
    return ExampleTeam(tuple(opened.profiles), claims)
