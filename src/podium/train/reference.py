"""The policy that training started from, as a measure of how far it has gone.

A completion's distance is log p(completion) under the policy minus that under the reference; its mean over the
policy's own completions is the KL divergence. Taken off the reward (Ziegler et al. 2019), it keeps plans likely that
nothing speaks against.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import torch

from podium.train.batch import Group, micro_batches
from podium.train.grpo import completion_logprobs
from podium.train.model import PolicyModel
from podium.train.sampler import Samples


class Reference:
    """A frozen policy."""

    def __init__(self, model: PolicyModel, temperature: float = 1.0) -> None:
        self._model = model.frozen()
        self._temperature = temperature

    def logprobs(
        self,
        prompt: Sequence[int],
        given: Sequence[tuple[int, ...]],
        completions: Sequence[tuple[int, ...]],
    ) -> list[list[float]]:
        """Of each token of completions that follow the prompt and what was given."""
        rows = list(zip(given, completions, strict=True))
        distinct = list(dict.fromkeys(rows))
        group = Group(
            tuple(prompt),
            completions=tuple(completion for _, completion in distinct),
            advantages=(1.0,) * len(distinct),
            given=tuple(before for before, _ in distinct),
        )
        (batch,) = micro_batches([group], "bnpo", max_tokens=1)
        with torch.no_grad():
            logprobs_N = completion_logprobs(self._model, batch, self._temperature)
        parts = torch.split(logprobs_N, [len(before) + len(completion) for before, completion in distinct])
        found = {row: part[len(row[0]) :].tolist() for row, part in zip(distinct, parts, strict=True)}
        return [found[row] for row in rows]

    def log_ratios(
        self, prompt: Sequence[int], given: Sequence[tuple[int, ...]], samples: Samples
    ) -> list[float]:
        """For each completion how many nats likelier it was where it was drawn than it is here."""
        here = self.logprobs(prompt, given, samples.tokens)
        return [fsum(drawn) - fsum(row) for drawn, row in zip(samples.logprobs, here, strict=True)]


def kl_weight(iteration: int, *, first: float, last: float | None, iterations: int) -> float:
    """The weight of an iteration counted from 0: from `first` to `last` in equal ratios; to 0 in equal steps."""
    if last is None or iterations < 2:
        return first
    progress = iteration / (iterations - 1)
    if min(first, last) == 0:
        return first + (last - first) * progress
    return float(first * (last / first) ** progress)
