"""Tries proposed plans beside the sampled ones, and makes of all of them the groups of an update."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from math import fsum

from podium.conductor.codec import Codec
from podium.planner import Planner
from podium.rollout import Rollout, Written
from podium.train.batch import Group, open_tokens
from podium.train.proposals import Tried, all_action_advantages, propose
from podium.train.reference import Reference
from podium.train.turns import Turn
from podium.types import Profile

Run = Callable[[Planner, str], Coroutine[None, None, Rollout | None]]
"""Runs and scores a planner on a question, under the seed of this name."""


@dataclass(frozen=True, slots=True)
class Trials:
    """How the plans of one batch are tried.

    Args:
        end: id of the token that ends a completion.
        count: proposals for a question.
        max_steps: of a plan.
        policy: as it samples now.
        start: as it began; None: its distance does not count.
        sure: see `GRPOSettings.sure`.
        seed: names the randomness.
    """

    codec: Codec
    end: int
    count: int
    max_steps: int
    policy: Reference
    start: Reference | None
    kl: float
    sure: float
    seed: str

    async def group(
        self, turn: Turn, sampled: Sequence[Rollout | None], profiles: Sequence[Profile], run: Run
    ) -> Group:
        """The samples of a turn and proposals for its question, each different completion once.

        Args:
            sampled: the rollouts of the turn's rows.
        """
        tried: dict[tuple[int, ...], Tried] = {}
        samples = turn.samples
        for tokens, logprobs, rollout in zip(samples.tokens, samples.logprobs, sampled, strict=True):
            if rollout is not None:
                tried.setdefault(tokens, Tried(logprobs)).rewards.append(rollout.reward.total)
        for tokens, reward in await self._proposed(turn, profiles, run):
            tried.setdefault(tokens, Tried(())).rewards.append(reward)
        completions = tuple(tried)
        nothing = ((),) * len(completions)
        if completions:
            unknown = [tokens for tokens, one in tried.items() if not one.logprobs]
            if unknown:
                found = self.policy.logprobs(turn.prompt, ((),) * len(unknown), unknown)
                for tokens, row in zip(unknown, found, strict=True):
                    tried[tokens].logprobs = row
            if self.start is not None:
                before = self.start.logprobs(turn.prompt, nothing, completions)
                for one, row in zip(tried.values(), before, strict=True):
                    one.distance = fsum(one.logprobs) - fsum(row)
        return Group(
            prompt=turn.prompt,
            completions=completions,
            advantages=tuple(all_action_advantages(list(tried.values()), self.kl)) if tried else (),
            given=nothing,
            open=tuple(open_tokens(one.logprobs, self.sure) for one in tried.values()),
        )

    async def _proposed(
        self, turn: Turn, profiles: Sequence[Profile], run: Run
    ) -> list[tuple[tuple[int, ...], float]]:
        written = self.codec.decode(turn.samples.tokens[0])
        name = f"{self.seed}/{turn.question}"
        texts = propose(written, profiles, count=self.count, max_steps=self.max_steps, seed=name)
        try:
            async with asyncio.TaskGroup() as group:
                pending = [
                    group.create_task(run(Written(text), f"proposal {number}"))
                    for number, text in enumerate(texts)
                ]
        except BaseExceptionGroup as failures:  # As where plans are sampled (`desk`).
            raise failures.exceptions[0] from None
        rollouts = [done.result() for done in pending]
        return [
            ((*self.codec.encode_completion(text), self.end), rollout.reward.total)
            for text, rollout in zip(texts, rollouts, strict=True)
            if rollout is not None
        ]
