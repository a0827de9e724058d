"""Samples the plans of a batch of rollouts with one policy, and keeps what the update needs of them.

`BatchedPolicy` runs the rollouts at the same time and collects their requests, so that each round of all rollouts is
one call of `RolloutSampler.generate`. Drawing tokens is `sampler`'s, grading is the scorer's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError
from podium.planner import Plan, Planner, PlanRequest
from podium.rollout import FixedPlan
from podium.train.batch import Group, count_trainable_tokens
from podium.train.grpo import Reference
from podium.train.model import PolicyModel
from podium.train.sampler import Samples, sample
from podium.train.settings import GRPOSettings
from podium.workflow import AccessRule

T = TypeVar("T")

Logprobs = tuple[tuple[float, ...], ...]
"""Of each token of each completion."""

SampleRequest = tuple[int, PlanRequest]
"""The number of a rollout, and its request."""

Generate = Callable[[Sequence[SampleRequest]], Sequence[str]]
"""Completions for a batch of requests, in their order: by rollout."""


class BatchedPolicy:
    """The planner of all rollouts of a batch.

    It waits until every rollout that still runs has made a request, and then has all of them completed at once. So
    each round of a batch is sampled together, and a rollout is an ordinary question to an ordinary orchestrator.
    """

    def __init__(self, generate: Generate, access: AccessRule = "lists") -> None:
        self.access = access
        """What the access lists of its plans may hold."""
        self._generate = generate
        self._running = 0
        self._waiting: dict[int, tuple[PlanRequest, asyncio.Future[str]]] = {}
        self._all_wait = asyncio.Event()

    async def run(self, rollouts: Sequence[Callable[[Planner], Awaitable[T]]]) -> list[T]:
        """Run rollouts, each with a planner that requests its plans here.

        Sampling blocks the event loop: nothing else runs meanwhile.
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
        except BaseExceptionGroup as failures:  # The caller sees the exception itself, not a group of one.
            raise failures.exceptions[0] from None
        return [done.result() for done in pending]

    async def request(self, number: int, request: PlanRequest) -> str:
        """The completion for a rollout, once every other rollout waits or has ended."""
        completion: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[number] = request, completion
        self._check_all_wait()
        try:
            return await completion
        finally:  # A rollout that was cancelled while it waited holds up nothing.
            self._waiting.pop(number, None)

    def _complete_all(self) -> None:
        waiting, self._waiting = sorted(self._waiting.items(), key=lambda item: item[0]), {}
        if waiting:
            texts = self._generate([(number, request) for number, (request, _) in waiting])
            for (_, (_, completion)), text in zip(waiting, texts, strict=True):
                if not completion.done():  # The rollout may have been cancelled at this very moment.
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
    """One round of those rollouts of one question that reached it: their prompts and completions."""

    question: int
    rollouts: tuple[int, ...]
    """Which of the question's rollouts, one for each row."""
    prompt: tuple[int, ...]
    """Tokens that all their prompts begin with."""
    prompt_suffixes: tuple[tuple[int, ...], ...]
    """The rest of each prompt."""
    samples: Samples

    def reference_logprobs(self, reference: Reference) -> Logprobs:
        """Of each token of each row, under the reference."""
        return reference.logprobs(self.prompt, self.prompt_suffixes, self.samples.tokens)

    def group(
        self,
        advantages: Sequence[float | None],
        freeze_prob: float,
        reference_logprobs: Logprobs | None = None,
    ) -> Group:
        """What the update reads.

        Args:
            advantages: of all rollouts of the question.
            freeze_prob: see `GRPOSettings.freeze_prob`.
            reference_logprobs: None: there is no KL term.
        """
        return Group(
            prompt=self.prompt,
            completions=self.samples.tokens,
            advantages=tuple(advantages[rollout] for rollout in self.rollouts),
            prompt_suffixes=self.prompt_suffixes,
            trainable_tokens=tuple(count_trainable_tokens(row, freeze_prob) for row in self.samples.logprobs),
            old_logprobs=self.samples.logprobs,
            reference_logprobs=reference_logprobs,
        )


@dataclass(slots=True)
class RolloutSampler:
    """Samples completions for the requests of a batch of rollouts, and keeps them.

    Args:
        end: id of the token that ends a completion.
        cost_sensitivity: the level of each question, where the settings have levels.
        seed: names the randomness.
    """

    model: PolicyModel
    start: Checkpoint
    codec: Codec
    end: int
    settings: GRPOSettings
    cost_sensitivity: Sequence[int]
    seed: str
    rounds: list[SampledRound] = field(default_factory=list)
    seconds: float = 0.0
    """Spent on sampling."""
    _generations: int = 0

    def generate(self, requests: Sequence[SampleRequest]) -> list[str]:
        """A completion for each request: rollout r of question q is number q * group + r.

        The requests of one question are sampled together, so that the common part of their prompts is read once.

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
        )
        self._generations += 1
        self.rounds += [
            SampledRound(question, tuple(rollout for rollout, _ in rows), prompt, rest, samples)
            for (question, rows), prompt, rest, samples in zip(
                questions.items(), prompts, suffixes, drawn, strict=True
            )
        ]
        self.seconds += time.perf_counter() - began
        return [self.codec.decode(tokens) for samples in drawn for tokens in samples.tokens]

    def _encode(self, request: PlanRequest, question: int, encoded: dict[str, list[int]]) -> list[int]:
        """The prompt of a request; `encoded` keeps those that were encoded before."""
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
                    f"The prompt of the question {request.question.text[:60]!r} has {len(encoded[text])} tokens; "
                    f"with max_tokens = {self.settings.max_tokens} that exceeds the {self.start.context} that the "
                    "policy can read."
                )
        return encoded[text]


def _common_start(prompts: Sequence[list[int]]) -> tuple[int, ...]:
    """The tokens that all prompts begin with."""
    first, last = min(prompts), max(prompts)  # In order, those that lie between begin with what these share.
    return tuple(
        first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
    )
