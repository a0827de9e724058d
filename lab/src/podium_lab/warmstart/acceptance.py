"""The acceptance check: the skills that a warm-started policy needs before reinforcement learning can improve it.

A policy that fails the check does not connect a worker's profile with its number, and GRPO would not teach it to.
Questions come from the validation split, and synthetic teams are new ones. Each share is over the cases of its own
test.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from random import Random
from statistics import fmean
from typing import NamedTuple

from tokenizers import Tokenizer

from podium.conductor.codec import PlainTextCodec
from podium.conductor.loaded_model import open_guide
from podium.conductor.prompt import build_prompt
from podium.planners.planner import PlanRequest
from podium.train.shared_prefix.policy_model import PolicyModel
from podium.train.shared_prefix.sampler import sample
from podium.workflow import PlanError, PlanRules, parse
from podium_lab.exercises.cases import (
    PROMPT,
    SKILLS,
    draw_team,
    reading_text,
    unseen_question,
)
from podium_lab.exercises.plans import WorldParts
from podium_lab.exercises.teams import ExampleTeam, read_thought
from podium_lab.warmstart.examples import query_line, query_prompt, reading_prompt
from podium_lab.warmstart.tokenizer import BEGIN_ID, END_ID

NAME_TO_NUMBER, SKILL_TO_NUMBER, COPYING, VALID_PLANS = 0.95, 0.90, 0.99, 0.99
STEPS_SAVED = 0.1
"""How many steps fewer a plan must have, on average, for each level of cost sensitivity."""
_GREEDY_TEMPERATURE = 1e-4
"""A temperature so low that the most likely token is drawn."""
_MAX_TOKENS = 192
_MAX_STEPS = 5
_MIN_PLANS = 10
"""Fewest plans of one length for which a share is reported."""
_ALL_LENGTHS = "all"
"""Reported in place of a length if no length has that many plans."""
_SAMPLING_BATCH = 250
"""Prompts in one sampling batch."""


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """What a policy can do with questions of the made-up world. All figures are shares in [0, 1]."""

    name_to_number: float
    """Worker names to which the policy gave the right number."""
    skill_to_number: float
    """Skills to which the policy gave the number of a worker that claims it. Only skills that a worker of the team
    claims are tested; 1 if there are none."""
    copying: float
    """Parts of questions that the policy copied without a wrong character."""
    thought: float
    """Parts of questions for which the thought names the right skill and a worker that claims it."""
    valid_plans: dict[str, float]
    """Valid plans at temperature 1, by number of steps; "all" if no number of steps occurred often."""
    steps_by_level: tuple[float, ...] = ()
    """Mean number of steps at temperature 1, for each level of cost sensitivity; () if the examples do not depend on
    the level."""

    @property
    def steps_saved(self) -> tuple[float, ...]:
        """For each level of cost sensitivity from 1, how many steps fewer its plans have than those of the level
        before."""
        return tuple(before - after for before, after in pairwise(self.steps_by_level))

    @property
    def passed(self) -> bool:
        """Whether reinforcement may begin."""
        return (
            self.name_to_number >= NAME_TO_NUMBER
            and self.skill_to_number >= SKILL_TO_NUMBER
            and self.copying >= COPYING
            and min(self.valid_plans.values(), default=0.0) >= VALID_PLANS
            and min(self.steps_saved, default=STEPS_SAVED) >= STEPS_SAVED
        )


def measure(
    model: PolicyModel,
    tokenizer: Tokenizer,
    teams: Mapping[str, ExampleTeam | None],
    *,
    cases: int = 1000,
    seed: int = 0,
    saves: bool = False,
) -> dict[str, AcceptanceReport]:
    """Run every test with `cases` cases, over each of `teams`; None stands for a new synthetic team in each case.

    Args:
        saves: whether plans have fewer steps at a higher level of cost sensitivity.
    """
    check = AcceptanceCheck(model, tokenizer, seed)
    copying = check.copying(cases)
    levels = range(PROMPT.levels if saves else 1)
    reports = {}
    for what, team in teams.items():
        names, skills = check.numbers(cases, team)
        planned = [check.planned(cases, team, level) for level in levels]
        steps = tuple(map(mean_steps, planned)) if saves else ()
        reports[what] = AcceptanceReport(names, skills, copying, *right_plans(planned[0]), steps)
    return reports


class PlannedCase(NamedTuple):
    """What the policy wrote for a question, the question's parts, and the team that it was planned for."""

    text: str
    parts: WorldParts
    team: ExampleTeam


class AcceptanceCheck:
    """The tests of the acceptance check, for one policy and seed."""

    def __init__(self, model: PolicyModel, tokenizer: Tokenizer, seed: int) -> None:
        self.model, self.seed = model, seed
        self._codec = PlainTextCodec(tokenizer, BEGIN_ID)
        self._guide = open_guide(PROMPT, self._codec.decode, model.shape.vocab)

    def encode(self, pieces: Iterable[str]) -> list[int]:
        """The tokens of a prompt, whose pieces are tokenized separately, as in training."""
        return [BEGIN_ID, *chain.from_iterable(map(self._codec.encode_completion, pieces))]

    def complete(
        self, prompts: Sequence[tuple[str, ...]], *, max_tokens: int, temperature: float
    ) -> list[str]:
        """The policy's completion of each prompt."""
        completions = []
        for start in range(0, len(prompts), _SAMPLING_BATCH):
            encoded = [self.encode(pieces) for pieces in prompts[start : start + _SAMPLING_BATCH]]
            rows = sample(
                self.model,
                [[prompt] for prompt in encoded],
                max_tokens=max_tokens,
                eos_token_ids=(END_ID,),
                seed=f"gate/{self.seed}/{start}",
                temperature=temperature,
                guide=self._guide,
            )
            drawn = {row.question: self._codec.decode(row.tokens) for row in rows}
            completions += [drawn[number] for number in range(len(encoded))]
        return completions

    def numbers(self, cases: int, known: ExampleTeam | None) -> tuple[float, float]:
        """Shares of names and of skills after which the most likely next token is the right number."""
        rng = Random(f"gate/numbers/{self.seed}")
        names, skills = [], []
        for _ in range(cases):
            team = known or draw_team(rng)
            member = rng.randrange(len(team.profiles))
            names.append(((query_prompt(team), query_line(team.profiles[member].name)), (member,)))
            skill = rng.choice([skill for skill in SKILLS if team.fit(skill)] or [""])
            if skill:
                skills.append(((query_prompt(team), query_line(skill)), team.fit(skill)))
        return self._share_right(names), self._share_right(skills)

    def _share_right(self, queries: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]) -> float:
        if not queries:
            return 1.0
        completions = self.complete(
            [pieces for pieces, _ in queries], max_tokens=1, temperature=_GREEDY_TEMPERATURE
        )
        right = [text.strip() in map(str, fit) for text, (_, fit) in zip(completions, queries, strict=True)]
        return sum(right) / len(right)

    def copying(self, cases: int) -> float:
        """Share of a question's parts that the policy copies exactly."""
        read = [unseen_question(self.seed, index) for index in range(cases)]
        completions = self.complete(
            [(reading_prompt(question),) for question, _ in read],
            max_tokens=_MAX_TOKENS,
            temperature=_GREEDY_TEMPERATURE,
        )
        spans = right = 0
        for text, (_, parts) in zip(completions, read, strict=True):
            lines = text.split("\n")
            for index, line in enumerate(reading_text(parts).split("\n")):
                spans += 1
                span = line.rpartition(" = ")[0]
                right += index < len(lines) and lines[index].rpartition(" = ")[0] == span
        return right / spans

    def planned(self, cases: int, known: ExampleTeam | None, level: int = 0) -> list[PlannedCase]:
        """What the policy writes at temperature 1 if its prompt states this level of cost sensitivity. Questions and
        teams depend on the seed alone."""
        rng = Random(f"gate/plans/{self.seed}")
        settings = PROMPT.model_copy(update={"cost_sensitivity": level})
        asked: list[tuple[WorldParts, ExampleTeam]] = []
        prompts = []
        for index in range(cases):
            question, parts = unseen_question(self.seed, index)
            team = known or draw_team(rng)
            (message,) = build_prompt(PlanRequest(question, team.profiles), settings)
            prompts.append((message.content,))
            asked.append((parts, team))
        completions = self.complete(prompts, max_tokens=_MAX_TOKENS, temperature=1.0)
        return [PlannedCase(text, *case) for text, case in zip(completions, asked, strict=True)]


def right_plans(planned: Sequence[PlannedCase]) -> tuple[float, dict[str, float]]:
    """Share of parts for which the thought is right, and shares of valid plans by number of steps."""
    count = right = 0
    for case in planned:
        read = read_thought(case.text)
        for index, skill in enumerate(case.parts.skills):
            count += 1
            fit = [*map(str, case.team.fit(skill))] or ["none"]
            right += index < len(read) and read[index][0] == skill and read[index][1] in fit
    sizes = ((case.text, len(case.team.profiles)) for case in planned)
    return right / count, valid_by_steps(sizes, _MAX_STEPS)


def mean_steps(planned: Sequence[PlannedCase]) -> float:
    """The mean number of steps of these plans."""
    return fmean(_steps(case.text) for case in planned)


def valid_by_steps(plans: Iterable[tuple[str, int]], max_steps: int) -> dict[str, float]:
    """Shares of valid plans, by number of steps.

    Numbers of steps with few plans are left out. If all have few, all plans count together, as "all".

    Args:
        plans: each with the number of workers in its pool.
    """
    valid: dict[int, list[bool]] = defaultdict(list)
    for text, workers in plans:
        plan = parse(text, PlanRules(workers=workers, max_steps=max_steps))
        valid[min(_steps(text), max_steps)].append(not isinstance(plan, PlanError))
    often = {str(steps): v for steps, v in sorted(valid.items()) if len(v) >= _MIN_PLANS or len(valid) == 1}
    if valid and not often:
        often = {_ALL_LENGTHS: [*chain.from_iterable(valid.values())]}
    return {steps: sum(v) / len(v) for steps, v in often.items()}


def _steps(plan: str) -> int:
    """The number of steps of a plan; 1 if its list of workers cannot be read."""
    numbers = re.search(r"model_id = \[([\d, ]+)\]", plan)
    return numbers.group(1).count(",") + 1 if numbers else 1
