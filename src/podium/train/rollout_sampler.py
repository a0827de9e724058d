"""What a policy was asked in a batch of rollouts, and what it wrote: the part of them that training is about.

A rollout has a turn in each of its rounds. Rollouts of one question are asked together, so that the reading of what
their prompts have in common is shared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import Codec
from podium.conductor.prompt import build_prompt
from podium.errors import ConfigError
from podium.planner import PlanRequest
from podium.train.batch import Group, trainable_tokens
from podium.train.batched_policy import SampleRequest
from podium.train.model import PolicyModel
from podium.train.reference import Reference
from podium.train.sampler import Samples, sample
from podium.train.settings import GRPOSettings


@dataclass(frozen=True, slots=True)
class Turn:
    """One round of the rollouts of one question that came so far."""

    question: int
    rollouts: tuple[int, ...]
    """Which of the question's rollouts, one for each row."""
    prompt: tuple[int, ...]
    """Tokens that all their prompts begin with."""
    given: tuple[tuple[int, ...], ...]
    """The rest of each prompt."""
    samples: Samples

    def log_ratios(self, reference: Reference) -> list[float]:
        """Of each row, in nats."""
        return reference.log_ratios(self.prompt, self.given, self.samples)

    def group(self, advantages: Sequence[float | None], sure: float) -> Group:
        """As the update reads it.

        Args:
            advantages: of all rollouts of the question.
            sure: see `GRPOSettings.sure`.
        """
        return Group(
            prompt=self.prompt,
            completions=self.samples.tokens,
            advantages=tuple(advantages[rollout] for rollout in self.rollouts),
            given=self.given,
            open=tuple(trainable_tokens(row, sure) for row in self.samples.logprobs),
        )


@dataclass(slots=True)
class RolloutSampler:
    """Samples whatever the rollouts of a batch ask, and keeps it.

    Args:
        end: id of the token that ends a completion.
        cost_sensitivity: the level that each question is asked at, where the settings have levels.
        seed: names the randomness.
    """

    model: PolicyModel
    start: Checkpoint
    codec: Codec
    end: int
    settings: GRPOSettings
    cost_sensitivity: Sequence[int]
    seed: str
    turns: list[Turn] = field(default_factory=list)
    seconds: float = 0.0
    """Spent here."""
    _rounds: int = 0

    def answer(self, asked: Sequence[SampleRequest]) -> list[str]:
        """Completions for all that ask: rollout r of question q is number q * group + r.

        Raises:
            ConfigError: a prompt is too long for the policy.
        """
        began = time.perf_counter()
        encoded: dict[str, list[int]] = {}
        questions: dict[int, list[tuple[int, list[int]]]] = {}
        for number, situation in asked:
            question, rollout = divmod(number, self.settings.group)
            questions.setdefault(question, []).append((rollout, self._encode(situation, question, encoded)))
        prompts = [_shared([tokens for _, tokens in rows]) for rows in questions.values()]
        given = [
            tuple(tuple(tokens[len(prompt) :]) for _, tokens in rows)
            for prompt, rows in zip(prompts, questions.values(), strict=True)
        ]
        drawn = sample(
            self.model,
            prompts,
            given=given,
            max_tokens=self.settings.max_tokens,
            end=self.end,
            seed=f"{self.seed}/{self._rounds}" if self._rounds else self.seed,
            temperature=self.settings.temperature,
        )
        self._rounds += 1
        self.turns += [
            Turn(question, tuple(rollout for rollout, _ in rows), prompt, rest, samples)
            for (question, rows), prompt, rest, samples in zip(
                questions.items(), prompts, given, drawn, strict=True
            )
        ]
        self.seconds += time.perf_counter() - began
        return [self.codec.decode(tokens) for samples in drawn for tokens in samples.tokens]

    def _encode(self, situation: PlanRequest, question: int, encoded: dict[str, list[int]]) -> list[int]:
        prompt = self.start.prompt
        if self.settings.cost_weights:
            prompt = prompt.model_copy(update={"cost_sensitivity": self.cost_sensitivity[question]})
        messages = build_prompt(situation, prompt)
        text = messages[-1].content
        if text not in encoded:
            encoded[text] = self.codec.encode(messages)
            longest = len(encoded[text]) + self.settings.max_tokens
            if longest > self.start.context:
                raise ConfigError(
                    f"The prompt of the question {situation.question.text[:60]!r} has {len(encoded[text])} tokens; "
                    f"with max_tokens = {self.settings.max_tokens} that exceeds the {self.start.context} that the "
                    "policy can read."
                )
        return encoded[text]


def _shared(prompts: Sequence[list[int]]) -> tuple[int, ...]:
    """The tokens that all begin with."""
    first, last = min(prompts), max(prompts)  # In order, those that lie between begin with what these share.
    return tuple(
        first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
    )
