"""Samples the plans of a batch of rollouts with one policy, and keeps the samples for the update.

`BatchedPolicy` runs the rollouts concurrently and collects their plan requests, so that one call of
`RolloutSampler.generate` samples a round of all rollouts. `sampler` draws the tokens; the scorer grades the rollouts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.guide import Guide
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError
from podium.planner import Plan, Planner, PlanRequest
from podium.rollout import FixedPlan
from podium.train.batch import Group, count_trainable_tokens
from podium.train.grpo import ReferencePolicy
from podium.train.model import PolicyModel
from podium.train.sampler import Samples, sample
from podium.train.settings import GRPOSettings
from podium.workflow import AccessRule

T = TypeVar("T")

Logprobs = tuple[tuple[float, ...], ...]
"""The log-probability of each token of each completion."""

SampleRequest = tuple[int, PlanRequest]
"""The number of a rollout, and its request."""

Generate = Callable[[Sequence[SampleRequest]], Sequence[str]]
"""Returns a completion for each request of a batch, in the order of the requests."""


class BatchedPolicy:
    """Plans for all rollouts of a batch.

    Each rollout is an ordinary question to an ordinary runner, whose planner sends its request here. When every
    rollout that still runs has sent a request, all requests are completed in one call of `generate`.
    """

    def __init__(self, generate: Generate, access: AccessRule = "lists") -> None:
        self.access = access
        """What the access lists of its plans may hold."""
        self._generate = generate
        self._running = 0
        self._waiting: dict[int, tuple[PlanRequest, asyncio.Future[str]]] = {}
        self._all_wait = asyncio.Event()

    async def run(self, rollouts: Sequence[Callable[[Planner], Awaitable[T]]]) -> list[T]:
        """Run rollouts, each with a planner that sends its requests to this policy.

        Sampling blocks the event loop: nothing else runs in the meantime.
        """
        self._running = len(rollouts)
        try:
            async with asyncio.TaskGroup() as group:
                pending = [
                    group.create_task(self._run_one(rollout, _RolloutPlanner(self, number)))
                    for number, rollout in enumerate(rollouts)
                ]
                while self._running:
                    await self._all_wait.wait()
                    self._all_wait.clear()
                    self._complete_all()
        except BaseExceptionGroup as failures:  # The caller gets the exception itself, not a group around it.
            raise failures.exceptions[0] from None
        return [done.result() for done in pending]

    async def request(self, number: int, request: PlanRequest) -> str:
        """Wait until every other rollout waits too or has ended; then return this rollout's completion."""
        completion: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = request, completion
        self._check_all_wait()
        try:
            return await completion
        finally:  # Also for a rollout that is cancelled while it waits: the others must not wait for it.
            self._waiting.pop(number, None)

    def _complete_all(self) -> None:
        waiting, self._waiting = sorted(self._waiting.items(), key=lambda item: item[0]), {}
        if waiting:
            texts = self._generate([(number, request) for number, (request, _) in waiting])
            for (_, (_, completion)), text in zip(waiting, texts, strict=True):
                if not completion.done():  # A rollout may have been cancelled after it sent its request.
                    completion.set_result(text)

    async def _run_one(self, rollout: Callable[[Planner], Awaitable[T]], planner: Planner) -> T:
        try:
            return await rollout(planner)
        finally:
            self._running -= 1
            self._check_all_wait()

    def _check_all_wait(self) -> None:
        if len(self._waiting) == self._running:
            self._all_wait.set()


@dataclass(frozen=True, slots=True)
class _RolloutPlanner:
    """The planner of one rollout."""

    policy: BatchedPolicy
    number: int
    name: str = "policy"

    async def plan(self, request: PlanRequest) -> Plan:
        text = await self.policy.request(self.number, request)
        return await FixedPlan(text, access=self.policy.access).plan(request)


@dataclass(frozen=True, slots=True)
class SampledRound:
    """The prompts and completions of one round, for those rollouts of a question that reached the round."""

    question: int
    round: int
    """From 0."""
    rollouts: tuple[int, ...]
    """Numbers of these rollouts within the question's group, one for each row."""
    prompt: tuple[int, ...]
    """The tokens with which all prompts begin."""
    prompt_suffixes: tuple[tuple[int, ...], ...]
    """The rest of each prompt."""
    samples: Samples

    def reference_logprobs(self, reference: ReferencePolicy) -> Logprobs:
        """Log-probabilities of the completions under the reference."""
        return reference.logprobs(self.prompt, self.prompt_suffixes, self.samples.tokens)

    def group(
        self,
        advantages: Sequence[float | None],
        skip_suffix_min_prob: float,
        reference_logprobs: Logprobs | None = None,
    ) -> Group:
        """The group that the update reads.

        Args:
            advantages: of all rollouts of the question, also those that did not reach this round.
            skip_suffix_min_prob: see `GRPOSettings.skip_suffix_min_prob`.
            reference_logprobs: None: there is no KL term.
        """
        return Group(
            prompt=self.prompt,
            completions=self.samples.tokens,
            advantages=tuple(advantages[rollout] for rollout in self.rollouts),
            prompt_suffixes=self.prompt_suffixes,
            trainable_tokens=tuple(
                count_trainable_tokens(row, skip_suffix_min_prob) for row in self.samples.logprobs
            ),
            old_logprobs=self.samples.logprobs,
            reference_logprobs=reference_logprobs,
        )


@dataclass(slots=True)
class RolloutSampler:
    """Samples completions for the requests of a batch of rollouts, and keeps them in `rounds`.

    Args:
        end: id of the token that ends a completion.
        cost_sensitivity: the level of each question, if the settings have levels.
        seed: names the randomness.
    """

    model: PolicyModel
    start: Checkpoint
    codec: Codec
    end: int
    settings: GRPOSettings
    cost_sensitivity: Sequence[int]
    seed: str
    guide: Guide | None = None
    """Guides the sampling; None: every token may be drawn."""
    rounds: list[SampledRound] = field(default_factory=list)
    seconds: float = 0.0
    """Seconds spent on sampling."""
    _generations: int = 0

    def generate(self, requests: Sequence[SampleRequest]) -> list[str]:
        """Sample a completion for each request. Rollout r of question q has the number q * group + r.

        The requests of one question are sampled together, so that the common start of their prompts is prefilled once.

        Raises:
            ConfigError: a prompt is too long for the policy.
        """
        began = time.perf_counter()
        encoded: dict[str, list[int]] = {}
        questions: dict[int, list[tuple[int, list[int]]]] = {}
        for number, request in requests:
            question, rollout = divmod(number, self.settings.group)
            questions.setdefault(question, []).append((rollout, self._encode(request, question, encoded)))
        prompts = [_common_start([tokens for _, tokens in rows]) for rows in questions.values()]
        suffixes = [
            tuple(tuple(tokens[len(prompt) :]) for _, tokens in rows)
            for prompt, rows in zip(prompts, questions.values(), strict=True)
        ]
        drawn = sample(
            self.model,
            prompts,
            prompt_suffixes=suffixes,
            max_tokens=self.settings.max_tokens,
            end=self.end,
            seed=f"{self.seed}/{self._generations}" if self._generations else self.seed,
            temperature=self.settings.temperature,
            guide=self.guide,
        )
        self.rounds += [
            SampledRound(
                question, self._generations, tuple(rollout for rollout, _ in rows), prompt, rest, samples
            )
            for (question, rows), prompt, rest, samples in zip(
                questions.items(), prompts, suffixes, drawn, strict=True
            )
        ]
        self._generations += 1
        self.seconds += time.perf_counter() - began
        return [self.codec.decode(tokens) for samples in drawn for tokens in samples.tokens]

    def _encode(self, request: PlanRequest, question: int, encoded: dict[str, list[int]]) -> list[int]:
        """The tokens of a request's prompt. `encoded` caches them by the prompt's text."""
        prompt = self.start.prompt
        if self.settings.cost_weights:
            prompt = prompt.model_copy(update={"cost_sensitivity": self.cost_sensitivity[question]})
        messages = build_prompt(request, prompt)
        text = messages[-1].content
        if text not in encoded:
            encoded[text] = self.codec.encode(messages)
            longest = len(encoded[text]) + self.settings.max_tokens
            if longest > self.start.context:
                raise ConfigError(
                    f"The prompt of the question {request.question.text[:60]!r} has {len(encoded[text])} tokens. "
                    f"With max_tokens = {self.settings.max_tokens} that exceeds the policy's context of "
                    f"{self.start.context} tokens; lower grpo.max_tokens or leave out the question."
                )
        return encoded[text]


def _common_start(prompts: Sequence[list[int]]) -> tuple[int, ...]:
    """The tokens with which all prompts begin."""
    # All prompts lie between the first and the last in sorted order, so they begin with what these two share.
    first, last = min(prompts), max(prompts)
    return tuple(
        first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
    )
