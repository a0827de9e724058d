"""The Conductor: a planner that prompts a language model, its policy, and parses the completion into a plan.

A completion that is no plan may get a second try. The Conductor runs no plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from random import Random

from podium.calls.worker_call import Listeners
from podium.conductor.policy import Completion, Policy, Sampling
from podium.conductor.prompt import (
    PolicyNumbering,
    PromptSettings,
    build_prompt,
    second_prompt,
    thinking_prompt,
)
from podium.errors import BudgetExceededError, UsageError, WorkerError
from podium.planners.planner import Planner, PlanRequest
from podium.trace import Plan
from podium.types import SEED_PREFIX_CHARS, fast_replace
from podium.workflow import PlanError, Step, StepReader, Workflow, parse, plan_schema

_THOUGHT_TOKENS = 150
"""The most tokens of a free thought before the plan."""


@dataclass(frozen=True, slots=True)
class Conductor(Planner):
    """The planner whose plans a trained or untrained language model writes."""

    policy: Policy
    prompt: PromptSettings = PromptSettings()
    """How a request is written as a prompt. For a checkpoint, `Checkpoint.prompt`."""
    _: KW_ONLY
    cost_sensitivity: float | None = None
    """The level of cost sensitivity. If it is between two levels, each question gets one of the two, and the nearer
    level more often. If it is None, the level in `prompt` counts."""
    second_try: bool = False
    """Whether the policy sees the error of a completion that is no plan, and may write another. In training it may not,
    since such an error must lower the reward."""
    sampling: Sampling = Sampling()
    """How completions are sampled. The seed is joined with the seed of the request."""
    name: str = "conductor"

    @property
    def streams_steps(self) -> bool:
        """Whether the policy writes structured plans, whose first steps can be read before the last."""
        return self.prompt.form == "structured"

    def at_temperature(self, temperature: float) -> Conductor:
        """A copy of the planner whose plans are sampled at this temperature."""
        return replace(self, sampling=replace(self.sampling, temperature=temperature))

    async def plan(self, request: PlanRequest) -> Plan:
        """Write one plan, in which workers have the pool's numbers. The plan's spending includes both tries.

        If the second try gets no answer, is over the budget, or has too long a prompt, the plan is the first completion
        with its error.

        Raises:
            WorkerError: the worker that writes plans did not answer.
            BudgetExceededError: a limit refuses the first try.
            UsageError: the prompt is longer than the policy can read.
        """
        prompt = self._prompt_for(request)
        numbering = PolicyNumbering.of(request.pool, prompt)
        ledger = request.ledger.part()
        context = fast_replace(request.call_context, ledger=ledger)
        complete = partial(self.policy.complete, context=context, log=request.attempts)
        request = numbering.to_policy(request)
        messages = build_prompt(request, prompt)
        if prompt.think:
            thinking = replace(self._seeded_sampling(request, 0), max_tokens=_THOUGHT_TOKENS)
            thought = await complete(thinking_prompt(messages), thinking)
            messages = thinking_prompt(messages, thought.text)
        completion = await complete(messages, self._plan_sampling(request, 0))
        first = replace(self._read(completion, request), messages=messages, spent=ledger.spent)
        if not self.second_try or not isinstance(first.decision, PlanError) or ledger.exhausted:
            return numbering.to_pool(first)
        again = second_prompt(messages, first.text, first.decision, prompt)
        try:
            completion = await complete(again, self._plan_sampling(request, 1))
        except (WorkerError, BudgetExceededError, UsageError) as error:
            # A UsageError says that the prompt with the first completion in it is too long.
            unanswered = replace(
                first.decision, message=f"{first.decision.message} A second try failed: {error}"
            )
            return numbering.to_pool(replace(first, decision=unanswered, spent=ledger.spent))
        second = replace(self._read(completion, request), messages=messages, spent=ledger.spent)
        return numbering.to_pool(second.with_rejected(first, first.decision))

    def _prompt_for(self, request: PlanRequest) -> PromptSettings:
        """The prompt settings with this question's level of cost sensitivity.

        The level is drawn with the question's text as the seed, so it is the same in every round.
        """
        if self.cost_sensitivity is None:
            return self.prompt
        level = math.floor(self.cost_sensitivity)
        # "thrift" was the name of cost sensitivity. Another word would draw other levels than in published results.
        drawn = Random(f"thrift/{request.question.text[:SEED_PREFIX_CHARS]}").random()
        level += drawn < self.cost_sensitivity - level
        return self.prompt.model_copy(update={"cost_sensitivity": level})

    def _read(self, completion: Completion, request: PlanRequest) -> Plan:
        return Plan(
            completion.text,
            parse(
                completion.text,
                request.rules(self.prompt.access),
                form=self.prompt.form,
                truncated=completion.truncated,
            ),
            reasoning=completion.reasoning,
            dropped=completion.dropped,
        )

    def _plan_sampling(self, request: PlanRequest, number: int) -> Sampling:
        """The sampling of one try, with the schema of the plan."""
        prompt, sampling = self.prompt, self._seeded_sampling(request, number)
        if prompt.form == "lists":
            return sampling
        rules = request.rules(prompt.access)
        schema = partial(
            plan_schema,
            rules=rules if prompt.pool == "described" else replace(rules, names=()),
            need_responses=tuple(
                number for number, profile in enumerate(request.pool) if profile.requires_earlier_responses
            ),
        )
        on_steps = request.on_steps
        make_listeners = None if on_steps is None else partial(self._listeners, request, on_steps)
        return replace(sampling, schema=schema, attempt=number, make_listeners=make_listeners)

    def _listeners(self, request: PlanRequest, on_steps: Callable[[tuple[Step, ...]], None]) -> Listeners:
        """The listeners to one completion, which stream the first steps while the rest is written."""
        reader, rules = StepReader(), request.rules(self.prompt.access)

        def listen(piece: str) -> None:
            written = reader.feed(piece)
            if written is not None:
                decision = parse(written, rules, form="structured")
                if isinstance(decision, Workflow):
                    on_steps(decision.steps)

        return Listeners(listen, lambda thought: None)

    def _seeded_sampling(self, request: PlanRequest, number: int) -> Sampling:
        sampling = self.sampling
        seed = f"{sampling.seed}/{request.seed}/round-{len(request.earlier_rounds)}/try-{number}"
        # In the brief style both tries have the same prompt, so a greedy policy would write the same completion.
        again = number > 0 and self.prompt.style == "brief"
        return replace(sampling, seed=seed, temperature=max(sampling.temperature, 1.0 if again else 0.0))
