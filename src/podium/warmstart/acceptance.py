"""The gate: what a warm-started policy must be able to do before reinforcement is worth its time.

Without it, learning cannot bind a profile to its number. Teams and questions are new ones; questions come from the
validation split. Shares are over the cases of each kind.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

import torch
from tokenizers import Tokenizer

from podium.conductor.prompt import build_prompt
from podium.lab import SKILLS, Problem, read_problem
from podium.planner import PlanRequest
from podium.tasks.embedded import EmbeddedTasks
from podium.train.model import PolicyModel
from podium.train.sampler import sample
from podium.types import Question
from podium.warmstart.embedded_examples import (
    PROMPT,
    Team,
    draw_team,
    query_line,
    query_prompt,
    read_thought,
    reading_prompt,
    reading_text,
)
from podium.warmstart.tokenizer import BEGIN_ID, END_ID
from podium.workflow import PlanError, parse

NAME_TO_NUMBER, SKILL_TO_NUMBER, COPYING, VALID_PLANS = 0.95, 0.90, 0.99, 0.99
_GREEDY = 1e-4
"""A temperature at which the most likely token is drawn."""
_LONGEST = 160
_MOST_STEPS = 5
_FEW = 10
"""Of a length that is seldom drawn, so many plans say something."""
_ALL = "all"
"""Stands for a length where no length has so many."""
_TOGETHER = 250
"""Prompts that are sampled from at once."""


@dataclass(frozen=True, slots=True)
class AcceptanceReport:
    """Shares in [0, 1]."""

    name_to_number: float
    skill_to_number: float
    """Of skills that somebody in the team claims; 1 where nobody claims one."""
    copying: float
    """Spans copied without a wrong character, of questions taken apart."""
    thought: float
    """Parts of questions for which the thought names the right skill and one who claims it."""
    valid_plans: dict[str, float]
    """At temperature 1, by number of steps; "all" where no number was seen often."""

    @property
    def passed(self) -> bool:
        """Whether reinforcement may begin."""
        return (
            self.name_to_number >= NAME_TO_NUMBER
            and self.skill_to_number >= SKILL_TO_NUMBER
            and self.copying >= COPYING
            and FormatReport(self.valid_plans).passed
        )


@dataclass(frozen=True, slots=True)
class FormatReport:
    """Whether plans can be read at all: what a policy for a recording must have learned before it is reinforced."""

    valid_plans: dict[str, float]
    """Shares in [0, 1] at temperature 1, by number of steps; "all" where no number was seen often. Empty: of none."""

    @property
    def passed(self) -> bool:
        """Whether reinforcement may begin; it may not where no plan was seen."""
        return min(self.valid_plans.values(), default=0.0) >= VALID_PLANS


def measure_format(
    model: PolicyModel,
    tokenizer: Tokenizer,
    prompts: Sequence[str],
    *,
    workers: int,
    max_steps: int,
    seed: int = 0,
) -> FormatReport:
    """Draw one plan for each prompt and see whether it can be read."""
    exam = AcceptanceCheck(model, tokenizer, seed)
    said = exam.complete([(prompt,) for prompt in prompts], max_tokens=_LONGEST, temperature=1.0)
    return FormatReport(valid_by_steps(((text, workers) for text in said), max_steps))


def measure(
    model: PolicyModel,
    tokenizer: Tokenizer,
    teams: Mapping[str, Team | None],
    *,
    cases: int = 1000,
    seed: int = 0,
) -> dict[str, AcceptanceReport]:
    """Measure a policy on `cases` cases of each kind, over each of `teams` (None: over a new one in each case)."""
    exam = AcceptanceCheck(model, tokenizer, seed)
    copying = exam.copying(cases)
    reports = {}
    for what, team in teams.items():
        names, skills = exam.numbers(cases, team)
        reports[what] = AcceptanceReport(names, skills, copying, *exam.plans(cases, team))
    return reports


class AcceptanceCheck:
    """The questions and answers of one measurement."""

    def __init__(self, model: PolicyModel, tokenizer: Tokenizer, seed: int) -> None:
        self.model, self.tokenizer, self.seed = model, tokenizer, seed
        self.tasks = EmbeddedTasks("validation", size=10**6, seed=seed, hop_shares=(0.25, 0.25, 0.25, 0.25))

    def numbers(self, cases: int, known: Team | None) -> tuple[float, float]:
        """Shares of names and of skills to which the most likely next token is the right number."""
        rng = Random(f"gate/numbers/{self.seed}")
        names, skills = [], []
        for _ in range(cases):
            team = known or draw_team(rng)
            member = rng.randrange(len(team.profiles))
            names.append(((query_prompt(team), query_line(team.profiles[member].name)), (member,)))
            skill = rng.choice([skill for skill in SKILLS if team.fit(skill)] or [""])
            if skill:
                skills.append(((query_prompt(team), query_line(skill)), team.fit(skill)))
        return self._answered(names), self._answered(skills)

    def _answered(self, queries: Sequence[tuple[tuple[str, ...], tuple[int, ...]]]) -> float:
        if not queries:
            return 1.0
        said = self.complete([pieces for pieces, _ in queries], max_tokens=1, temperature=_GREEDY)
        right = [text.strip() in map(str, fit) for text, (_, fit) in zip(said, queries, strict=True)]
        return sum(right) / len(right)

    def copying(self, cases: int) -> float:
        """Share of spans that are copied exactly when a question is taken apart."""
        read = [self._question(index) for index in range(cases)]
        said = self.complete(
            [(reading_prompt(question),) for question, _ in read], max_tokens=_LONGEST, temperature=_GREEDY
        )
        spans = right = 0
        for text, (_, problem) in zip(said, read, strict=True):
            lines = text.split("\n")
            for place, line in enumerate(reading_text(problem).split("\n")):
                spans += 1
                span = line.rpartition(" = ")[0]
                right += place < len(lines) and lines[place].rpartition(" = ")[0] == span
        return right / spans

    def plans(self, cases: int, known: Team | None) -> tuple[float, dict[str, float]]:
        """Share of parts that the thought reads rightly; shares of valid plans by number of steps."""
        rng = Random(f"gate/plans/{self.seed}")
        asked: list[tuple[str, Problem, Team]] = []
        for index in range(cases):
            question, problem = self._question(index)
            team = known or draw_team(rng)
            (message,) = build_prompt(PlanRequest(question, team.profiles), PROMPT)
            asked.append((message.content, problem, team))
        said = self.complete([(prompt,) for prompt, _, _ in asked], max_tokens=_LONGEST, temperature=1.0)
        parts = right = 0
        for text, (_, problem, team) in zip(said, asked, strict=True):
            read = read_thought(text)
            for place, skill in enumerate(problem.skills):
                parts += 1
                fit = [*map(str, team.fit(skill))] or ["none"]
                right += place < len(read) and read[place][0] == skill and read[place][1] in fit
        sizes = (len(team.profiles) for _, _, team in asked)
        return right / parts, valid_by_steps(zip(said, sizes, strict=True), _MOST_STEPS)

    def tokens(self, text: str) -> list[int]:
        """Of one piece."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _question(self, index: int) -> tuple[Question, Problem]:
        question = self.tasks[index].question
        problem = read_problem(question.text)
        assert problem is not None, question.text
        return question, problem

    def complete(
        self, prompts: Sequence[tuple[str, ...]], *, max_tokens: int, temperature: float
    ) -> list[str]:
        """What the policy goes on with. Pieces of a prompt become tokens apart from each other, as in the lessons."""
        said = []
        for start in range(0, len(prompts), _TOGETHER):
            encoded = [
                [BEGIN_ID, *chain.from_iterable(map(self.tokens, pieces))]
                for pieces in prompts[start : start + _TOGETHER]
            ]
            with torch.no_grad():
                samples = sample(
                    self.model,
                    encoded,
                    prompt_suffixes=[[()]] * len(encoded),
                    max_tokens=max_tokens,
                    end=END_ID,
                    seed=f"gate/{self.seed}/{start}",
                    temperature=temperature,
                )
            said += [
                self.tokenizer.decode(list(drawn.tokens[0]), skip_special_tokens=True) for drawn in samples
            ]
        return said


def valid_by_steps(plans: Iterable[tuple[str, int]], max_steps: int) -> dict[str, float]:
    """Shares of plans that can be read, by number of steps; each comes with the size of its pool.

    Numbers that are seldom seen are left out; where all are, all plans count together.
    """
    valid: dict[int, list[bool]] = defaultdict(list)
    for text, workers in plans:
        numbers = re.search(r"model_id = \[([\d, ]+)\]", text)
        steps = numbers.group(1).count(",") + 1 if numbers else 1
        plan = parse(text, workers=workers, max_steps=max_steps)
        valid[min(steps, max_steps)].append(not isinstance(plan, PlanError))
    often = {str(steps): v for steps, v in sorted(valid.items()) if len(v) >= _FEW or len(valid) == 1}
    if valid and not often:
        often = {_ALL: [*chain.from_iterable(valid.values())]}
    return {steps: sum(v) / len(v) for steps, v in often.items()}
