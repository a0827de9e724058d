"""SFT examples about recordings: readings of their training questions, and plans for them.

In a *reading* the policy predicts the words of a question, and so learns which clusters of questions there are. A
*plan* is the policy's own prompt, a thought that names the question's cluster, and a random committee. In some plans an
earlier round comes first; half of these accept its answer. Random plans ignore verdicts, so they are no better than
chance. But each cluster prefers some workers at random (its *habit*), so that the policy learns to make plans depend on
the cluster.

Plans *from verdicts* are drawn by the values of committees on training questions of the same cluster
(`committee_value`). A policy that learns from them is a trained Conductor, not only a start for GRPO. A *level sweep*
is one question at every level of cost sensitivity, with thoughts and without plans.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random

from podium.baselines.phrases import ANSWER_WHOLE_QUESTION
from podium.baselines.plans import voting_step
from podium.conductor.prompt import PromptSettings, build_prompt, listed, shortened
from podium.planner import Outcome, PlanRequest
from podium.types import Profile, Question
from podium.warmstart.committee_value import CommitteeValues
from podium.warmstart.examples import SFTExample, Shares
from podium.workers.pool import Pool
from podium.workers.vote import NOTHING, VOTE
from podium.workflow import Acceptance, Step, Workflow, render

MOST_STEPS = 6
"""Five answers and a vote."""
_SIZES = (0.35, 0.1, 0.28, 0.0, 0.27)
"""Shares of committees with one answer, two answers and so on. Odd numbers seldom tie, and two can agree."""
_DIFFERENT = (0.4, 0.4, 0.2)
"""Shares of committees with one, two and three different workers."""
_HABIT = 1.2
"""Standard deviation of the logits with which a cluster prefers workers."""
_SIZE_HABIT = 0.5
"""Standard deviation of the logits with which a cluster prefers sizes."""
_ALL = 0.3
"""Share of the teams that are the whole pool."""
_PAIR = 2
_FEWEST = 3
"""Workers of the smallest pool."""


def random_team(rng: Random, profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """The whole pool, or some of its workers in random order; the voting tool, if there is one, always comes first."""
    if rng.random() < _ALL or len(profiles) <= _FEWEST:
        return tuple(profiles)
    workers = [profile for profile in profiles if profile.name != VOTE]
    drawn = rng.sample(workers, rng.randint(min(_FEWEST, len(workers)), len(workers)))
    return (*(profile for profile in profiles if profile.name == VOTE), *drawn)


def random_committee(
    rng: Random, profiles: Sequence[Profile], cluster: str | None = None, *, max_steps: int = MOST_STEPS
) -> Workflow:
    """Draw one worker alone, or up to five answers of up to three workers and a vote, by the cluster's habits, if any.

    Subtasks are numbered, because a small model cannot count steps without numbers.
    """
    workers = [i for i, profile in enumerate(profiles) if profile.name != VOTE]
    can_vote = len(workers) < len(profiles)
    sizes = [share * _habit(cluster, f"{size}", _SIZE_HABIT) for size, share in enumerate(_SIZES)]
    fitting = sizes[: max(1, max_steps - 1)] if can_vote else sizes[:1]
    (size,) = rng.choices(range(1, len(fitting) + 1), fitting)
    (different,) = rng.choices(range(1, len(_DIFFERENT) + 1), _DIFFERENT)
    liked = {worker: _habit(cluster, profiles[worker].name, _HABIT) for worker in workers}
    members: list[int] = []
    for _ in range(min(different, size, len(workers))):
        members += rng.choices(list(liked), list(liked.values()))
        del liked[members[-1]]
    return _voting(sorted(members + rng.choices(members, k=size - len(members))), profiles)


def supervised_committee(
    rng: Random, request: PlanRequest, values: CommitteeValues, cluster: str, level: int
) -> Workflow:
    """Draw a committee with a high value on this question, or on its cluster, at a level of cost sensitivity."""
    team = request.pool
    drawn = values.draw(
        rng,
        cluster,
        [profile.name for profile in team],
        level=level,
        most=most_answers(request),
        rounds=request.rounds,
        question=request.question.text,
    )
    return committee_of(drawn, team)


def most_answers(request: PlanRequest) -> int:
    """Most answers of one plan. The vote takes a step too, but a single answer needs no vote."""
    can_vote = any(profile.name == VOTE for profile in request.pool)
    return max(1, request.max_steps - 1) if can_vote else 1


def committee_of(names: Sequence[str], team: Sequence[Profile]) -> Workflow:
    """The plan of a committee: a step for each name, which may repeat, and a vote if there are several.

    A pair keeps its order, because the first answer wins if the two differ. Larger committees are written in the order
    of the prompt, which the policy learns fastest. Their values are measured in another order: the prompt's order comes
    from the same verdicts, so values measured in it would overstate large committees.
    """
    of_all = [profile.name for profile in team]
    members = [of_all.index(name) for name in names]
    return _voting(members if len(members) == _PAIR else sorted(members, key=listed(team).index), team)


def _voting(members: Sequence[int], profiles: Sequence[Profile]) -> Workflow:
    steps = tuple(
        Step(worker, f"{place}. {ANSWER_WHOLE_QUESTION}") for place, worker in enumerate(members, 1)
    )
    return Workflow(steps if len(members) == 1 else (*steps, voting_step(profiles)))


@cache
def _habit(cluster: str | None, what: str, deviation: float) -> float:
    """The factor by which a cluster prefers something. It never changes; without a cluster it is 1."""
    return 1.0 if cluster is None else math.exp(Random(f"habit/{cluster}/{what}").gauss(0.0, deviation))


_ROUNDS = 2
"""Most rounds of a question."""
_WIDEST = 0.6
"""Share of the prompts that allow `MOST_STEPS` steps; the others draw a smaller limit."""
_ACCEPTING = 0.1
"""For a source with one round: the share of its examples that show a second round, in which the plan accepts."""


@dataclass(frozen=True, slots=True)
class ExampleQuestion:
    """A training question of a recording."""

    text: str
    cluster: str
    """As the prompt names it; empty: examples name none."""
    answers: tuple[str, ...]
    """Recorded answers of workers, right or wrong."""
    accuracies: Mapping[str, float] = field(default_factory=dict)
    """The accuracy that the prompt shows of each worker, by name. A worker that is not named has that of its rating."""


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """The training questions of one recording, and the pool that answers them."""

    questions: tuple[ExampleQuestion, ...]
    pool: Pool
    values: CommitteeValues | None = None
    """None: no plan is chosen by verdicts."""
    weight: float = 1.0
    """How often the source is drawn, relative to the other sources."""

    def profiles_for(self, question: ExampleQuestion) -> list[Profile]:
        """The profiles of the pool, with the accuracies that the prompt of this question shows."""
        profiles = []
        for profile in self.pool.profiles_for(question.text):
            if profile.rating is not None and profile.name in question.accuracies:
                shown = profile.rating.model_copy(update={"accuracy": question.accuracies[profile.name]})
                profiles.append(profile.model_copy(update={"rating": shown}))
            else:
                profiles.append(profile)
        return profiles


def draw_recorded_example(
    name: str,
    index: int,
    *,
    sources: Sequence[RecordedSource],
    prompt: PromptSettings,
    shares: Shares,
    later: float,
) -> SFTExample:
    """Draw one example. The same arguments always give the same example.

    Args:
        name: names a sequence of examples; another name gives other examples.
        index: the example's place in that sequence.
        later: share of the random plans that come after an earlier round.
    """
    rng = Random(f"recorded lesson/{name}/{index}")
    (source,) = rng.choices(sources, [source.weight for source in sources])
    question = rng.choice(source.questions)
    if rng.random() * (shares.reading + shares.plan) < shares.reading:
        return SFTExample("", ((f"Question: {shortened(question.text, prompt.question_chars)}", True),))
    request = PlanRequest(
        Question(text=question.text),
        random_team(rng, source.profiles_for(question)),
        max_steps=MOST_STEPS if rng.random() < _WIDEST else rng.randint(1, MOST_STEPS - 1),
        rounds=rng.randint(1, _ROUNDS),
    )
    if prompt.levels:
        prompt = prompt.model_copy(update={"cost_sensitivity": rng.randrange(prompt.levels)})
    if source.values is not None and rng.random() < shares.from_verdicts:
        plans = _VerdictPlans(rng, source.values, question, request, prompt)
        sweep = prompt.levels and rng.random() < shares.level_sweep
        return plans.level_sweep() if sweep else plans.plan()
    decision, outcomes = _random_plan(rng, question, request, later)
    rounds = 1 if outcomes else request.rounds
    return _example(question, replace(request, outcomes=outcomes, rounds=rounds), decision, prompt)


def _example(
    question: ExampleQuestion, request: PlanRequest, decision: Workflow | Acceptance, prompt: PromptSettings
) -> SFTExample:
    (message,) = build_prompt(request, prompt)
    written = f"{cluster_thought(question.cluster, decision, request.pool)}\n{render(decision)}"
    return SFTExample(message.content, ((written, True),))


def _random_plan(
    rng: Random, question: ExampleQuestion, request: PlanRequest, later: float
) -> tuple[Workflow | Acceptance, tuple[Outcome, ...]]:
    """Draw a random committee, or a random second round and the outcome of its first round."""
    team, cluster = request.pool, question.cluster or None
    committee = random_committee(rng, team, cluster, max_steps=request.max_steps)
    if rng.random() >= later:
        return committee, ()
    before = random_committee(rng, team, cluster, max_steps=request.max_steps)
    answered = max(1, len(before.steps) - 1)
    outcome = _outcome(before, rng.choice(question.answers or ("",)), rng.randint(1, answered), answered)
    return (Acceptance() if rng.random() < 0.5 else committee), (outcome,)


class _VerdictPlans:
    """Draws the plans of one question by the values of committees.

    If the source has two rounds, half of the questions are shown in their second round.

    Args:
        request: the request of the first round.
    """

    def __init__(
        self,
        rng: Random,
        values: CommitteeValues,
        question: ExampleQuestion,
        request: PlanRequest,
        prompt: PromptSettings,
    ) -> None:
        self._rng = rng
        self._values = values
        self._question = question
        self._request = request
        self._prompt = prompt
        self._members: tuple[str, ...] = ()
        self._agree = 0
        if rng.random() < (0.5 if values.rounds > 1 else _ACCEPTING):
            self._begin()

    def plan(self) -> SFTExample:
        """An example with a plan, at the level of cost sensitivity that the prompt names."""
        decision = self._decision(self._prompt.cost_sensitivity)
        return _example(self._question, self._request, decision, self._prompt)

    def level_sweep(self) -> SFTExample:
        """An example with the thoughts at every level of cost sensitivity, in random order.

        It has no plans, because a plan follows from its thought.
        """
        levels = self._rng.sample(range(self._prompt.levels), self._prompt.levels)
        pieces: list[tuple[str, bool]] = []
        for level in levels:
            if pieces:
                pieces.append((f"\nThrift: {level}\nPlan:\n", False))
            pieces.append(
                (cluster_thought(self._question.cluster, self._decision(level), self._request.pool), True)
            )
        (message,) = build_prompt(
            self._request, self._prompt.model_copy(update={"cost_sensitivity": levels[0]})
        )
        return SFTExample(message.content, tuple(pieces))

    def _begin(self) -> None:
        """Make up a first round: draw a committee and its outcome. Then the request becomes that of the last round."""
        team = self._request.pool
        self._request = replace(self._request, rounds=_ROUNDS)
        committee = self._committee(self._prompt.cost_sensitivity)
        self._members = tuple(
            team[step.worker].name for step in committee.steps if team[step.worker].name != VOTE
        )
        self._agree, answered = self._values.agreeing(self._members, self._question.text)
        answer = self._rng.choice(self._question.answers or ("",))
        outcome = _outcome(committee, answer, self._agree, answered)
        self._request = replace(self._request, outcomes=(outcome,), rounds=1)

    def _decision(self, level: int) -> Workflow | Acceptance:
        """Draw a committee; or accept, if no second round improves on the answer of the first."""
        request = self._request
        if not request.outcomes:
            return self._committee(level)
        names = [profile.name for profile in request.pool]
        second = self._values.draw_next(
            self._rng,
            self._question.cluster,
            names,
            self._members,
            self._agree,
            level=level,
            most=most_answers(request),
        )
        return committee_of(second, request.pool) if second else Acceptance()

    def _committee(self, level: int) -> Workflow:
        return supervised_committee(self._rng, self._request, self._values, self._question.cluster, level)


def prompts(texts: Sequence[str], pool: Pool, prompt: PromptSettings) -> list[str]:
    """The policy's prompt for each question, with the largest limit of steps."""
    requests = (
        PlanRequest(Question(text=text), pool.profiles_for(text), max_steps=MOST_STEPS) for text in texts
    )
    return [build_prompt(request, prompt)[0].content for request in requests]


def cluster_thought(cluster: str, decision: Workflow | Acceptance, team: Sequence[Profile]) -> str:
    """The thought of a plan: the question's cluster, the numbers of the workers that answer, and the number of steps.

    The numbers come right after the cluster: a policy learns to predict a token from the one before it much sooner than
    from tokens further back. Numbers of two digits stand in brackets; otherwise 110 could be two committees. The number
    of steps stands before the plan, so that the policy keeps to it.
    """
    steps = decision.steps if isinstance(decision, Workflow) else ()
    workers = [step.worker for step in steps if team[step.worker].name != VOTE]
    numbers = "".join(f"{number}" if number < 10 else f"({number})" for number in workers)
    return f"{cluster}{numbers}; steps {len(steps)}"


def _outcome(workflow: Workflow, answer: str, agree: int, answered: int) -> Outcome:
    """The outcome of a round in which `agree` of `answered` answers are equal."""
    if len(workflow.steps) == 1:
        return Outcome(workflow, answer)
    if not answered:
        return Outcome(workflow, NOTHING)
    return Outcome(workflow, f"{agree} of {answered} responses agree.\nAnswer: {answer}")
