"""Early stopping: a vote's steps run in turns, the cheapest first, until the vote's result is certain.

Each turn starts the fewest steps that could make the result certain if they agreed. So the vote has the same result and
costs less, but takes a few calls longer. It is adaptive consistency (Aggarwal et al. 2023), except that it stops only
when no further answer can change the result.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from podium.executor.question_context import QuestionContext
from podium.trace import Span
from podium.types import Profile
from podium.workers.base import AnswerKey, StoppingRule
from podium.workers.pool import Pool
from podium.workers.vote import responses_to_get_next
from podium.workflow import Step, Workflow

_OUTPUT_PER_INPUT = 4
"""The assumed output tokens per input token, to compare the prices of workers that were not measured."""


@dataclass(slots=True)
class EarlyStoppingVote:
    """One vote that may stop early: its rule, and which steps still wait for their turn."""

    step: Step
    stopping_rule: StoppingRule
    answer_key: AnswerKey
    reads: tuple[int, ...]
    """The steps that the vote reads."""
    waiting: list[int]
    """The steps of `reads` that wait for their turn, the cheapest first. No other step reads them."""
    is_certain: bool = False
    """Whether no further response can change the vote's result."""

    def skips(self, position: int) -> bool:
        """Whether the vote's result is certain without the step."""
        return self.is_certain and self.defers(position)

    def defers(self, position: int) -> bool:
        """Whether the step does not start now."""
        return position in self.waiting

    def next_steps(self, before: Sequence[str], ended: Mapping[int, Span]) -> tuple[int, ...]:
        """If all steps that were started for the vote have ended, choose the next steps to start. Returns the ended
        steps that the chosen ones waited for; an empty tuple if none is chosen. `before` are the responses of earlier
        rounds that the vote may read, and `ended` the steps that have ended, by position."""
        if self.is_certain or any(j not in ended and j not in self.waiting for j in self.reads):
            return ()
        before = before if self.step.access.sees_previous else ()
        responses = [ended[j].response or "" if j in ended else None for j in self.reads]
        order = [len(before) + self.reads.index(j) for j in self.waiting]
        turn = responses_to_get_next(
            self.stopping_rule, self.step.subtask, [*before, *responses], order, self.answer_key
        )
        self.is_certain = not turn
        started = {self.reads[index - len(before)] for index in turn}
        self.waiting = [j for j in self.waiting if j not in started]
        return tuple(j for j in self.reads if j in ended) if started else ()


def answering_steps(workflow: Workflow, pool: Pool) -> frozenset[int]:
    """The steps whose responses may be the answer: the last, and if it is a vote, the steps from which it may copy
    one."""
    answering = {len(workflow.steps) - 1}
    for position, step in reversed([*enumerate(workflow.steps)]):
        if position in answering and pool[step.worker].traits.stopping_rule is not None:
            answering.update(workflow.reads(position))
    return frozenset(answering)


def find_early_stops(
    workflow: Workflow, needed: Collection[int], question_context: QuestionContext, round: int
) -> dict[int, EarlyStoppingVote]:
    """The votes of a workflow that can stop early, by position. Such a vote counts only the responses that it has, so
    no later round and no step but a vote may read its count. Nor may the layout be `chat` with a history, since
    messages of the history look like responses of steps."""
    is_last_round = round == question_context.ledger.budget.rounds - 1
    has_look_alikes = question_context.settings.layout == "chat" and question_context.question.history
    if not is_last_round or has_look_alikes:
        return {}
    traits = {position: question_context.pool[workflow.steps[position].worker].traits for position in needed}
    readers = {j: [k for k in needed if j in workflow.reads(k)] for j in needed}
    profiles = question_context.profiles
    early_stops: dict[int, EarlyStoppingVote] = {}
    for position in needed:
        rule = traits[position].stopping_rule
        if rule is None or any(traits[k].stopping_rule is None for k in readers[position]):
            continue
        reads = workflow.reads(position)
        own = [j for j in reads if readers[j] == [position]]
        order = cheapest_first([profiles[workflow.steps[j].worker] for j in own])
        early_stops[position] = EarlyStoppingVote(
            workflow.steps[position],
            rule,
            traits[position].answer_key,
            reads,
            [own[index] for index in order],
        )
    return early_stops


def cheapest_first(profiles: Sequence[Profile]) -> list[int]:
    """Numbers of profiles, ordered by the cost of an answer."""
    costs = comparable_costs(profiles)
    return sorted(range(len(profiles)), key=costs.__getitem__)


def comparable_costs(profiles: Sequence[Profile]) -> list[float]:
    """For each profile, the measured cost of an answer, or if any profile was not measured, a price instead."""
    if all(profile.rating is not None for profile in profiles):
        return [profile.rating.cost_usd for profile in profiles if profile.rating is not None]
    return [profile.price.input + _OUTPUT_PER_INPUT * profile.price.output for profile in profiles]
