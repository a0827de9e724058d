"""SFT examples for a policy that leads a team: texts, with the parts that count in the loss marked.

There are four kinds. A *plan* is the policy's own prompt, then a thought, then a random plan; the thought names for
each part of the question the skill that it needs and a worker that claims the skill. A *lookup* asks repeatedly for the
number of a worker's name or of a skill. A *team* has the same thought, then the list of the numbers that it named, and
no plan. A *reading* copies the parts of a question and names their skills. All questions come from the train split.

Teams are either one fixed pool or synthetic, a new one in each example. A policy that sees only one team memorises
which number is which worker; a policy that sees many has to read the profiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from podium.conductor.prompt import build_prompt
from podium.planners.planner import PlanRequest
from podium.types import Question
from podium.workflow import render
from podium_lab.exercises.cases import (
    PROMPT,
    SKILLS,
    draw_plan,
    draw_question,
    draw_team,
    reading_text,
)
from podium_lab.exercises.teams import ExampleTeam, Shares, claimants, skill_thought

_QUERIES_PER_LOOKUP = 14
"""Numbers that one lookup example queries."""


@dataclass(frozen=True, slots=True)
class SFTExample:
    """One training text: a prompt and the pieces that follow it."""

    prompt: str
    pieces: tuple[tuple[str, bool], ...]
    """Each piece, and whether its tokens count in the loss."""


def draw_example(
    name: str,
    index: int,
    *,
    known: ExampleTeam | None = None,
    synthetic_teams: float = 1.0,
    shares: Shares = Shares(),
) -> SFTExample:
    """Draw one example. The same arguments always give the same example.

    Args:
        name: names a sequence of examples; another name gives other examples.
        index: the example's index in that sequence.
        known: the team of the examples that have no synthetic one. Default: all teams are synthetic.
        synthetic_teams: the share of the examples with a synthetic team.
    """
    rng = Random(f"lesson/{name}/{index}")
    (draw,) = rng.choices(
        (_plan, _lookup, _team, _reading), (shares.plan, shares.lookup, shares.team, shares.reading)
    )
    team = draw_team(rng) if known is None or rng.random() < synthetic_teams else known
    return draw(rng, team, shares)


def _plan(rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    case = draw_plan(rng, team, shares)
    (message,) = build_prompt(case.request, case.prompt)
    return SFTExample(message.content, ((f"{case.thought}\n{render(case.decision)}", True),))


def _team(rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    question, parts = draw_question(rng)
    (message,) = build_prompt(PlanRequest(question, team.profiles), PROMPT)
    numbers = claimants(parts.skills, team, rng)
    # A list of numbers cannot say "none", so a random worker stands for a part that no worker fits.
    listed = [number if number.isdecimal() else str(rng.randrange(len(team.profiles))) for number in numbers]
    prompt = message.content.removesuffix("Plan:\n") + "Team:\n"
    return SFTExample(
        prompt, ((f"{skill_thought(parts.skills, numbers)}\nmodel_id = [{', '.join(listed)}]", True),)
    )


def query_prompt(team: ExampleTeam) -> str:
    """The beginning of a lookup example."""
    listed = "\n".join(f"{i}: {p.name}: {p.description}" for i, p in enumerate(team.profiles))
    return f"Models:\n{listed}\nNumbers:\n"


def query_line(key: str) -> str:
    """A line of a lookup up to the number that the policy completes; `key` is a worker's name or a skill."""
    return f"- {key} "


def _lookup(rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    pieces: list[tuple[str, bool]] = []
    for _ in range(_QUERIES_PER_LOOKUP):
        if rng.random() < 0.4:
            member = rng.randrange(len(team.profiles))
            pieces += [(query_line(team.profiles[member].name), False), (f"{member}", True)]
        else:
            skill = rng.choice(SKILLS)
            fit = team.fit(skill)
            pieces += [(query_line(skill), False), (f"{rng.choice(fit)}" if fit else "none", True)]
        pieces.append(("\n", False))
    return SFTExample(query_prompt(team), tuple(pieces))


def reading_prompt(question: Question) -> str:
    """The message that asks for the parts of a question."""
    return f"Question: {question.text}\nParts:\n"


def _reading(rng: Random, team: ExampleTeam, shares: Shares) -> SFTExample:
    question, parts = draw_question(rng)
    return SFTExample(reading_prompt(question), ((reading_text(parts), True),))
