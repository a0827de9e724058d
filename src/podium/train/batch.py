"""From groups of completions to the tensors of a micro-batch.

Real tokens are packed one after another; only attention sees the padded [Q, G, T]. A completion without an
advantage (its workers failed) is left out as if it had never been sampled. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.objective import TokenWeights
from podium.train.sampler import pad_prompts

Row = tuple[tuple[int, ...], int]
"""Tokens that follow a prompt, and how many of the first of them are a prompt suffix, which is not trained on."""


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt, with their advantages."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    """Token ids; none is empty."""
    advantages: tuple[float | None, ...]
    """None: left out."""
    prompt_suffixes: tuple[tuple[int, ...], ...] | None = None
    """Of each completion, the end of its prompt that the others do not share; None: nothing."""
    trainable_tokens: tuple[int, ...] | None = None
    """How many tokens of each completion, from the first, are trained on (`count_trainable_tokens`); None: all."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of the completions that count."""
        pairs = zip(self.completions, self.advantages, strict=True)
        return tuple(len(completion) for completion, advantage in pairs if advantage is not None)

    @property
    def dead(self) -> bool:
        """Whether no completion is better than another, so that the group has no gradient."""
        return not any(self.advantages)

    def weighted_advantages(self, weights: Mapping[int, float]) -> dict[Row, float]:
        """Each different row once, with the sum of its advantages times weights: the gradient is linear in them.

        Args:
            weights: of a token, by the length of its completion.
        """
        weighted: dict[Row, float] = {}
        ends = self.trainable_tokens or tuple(map(len, self.completions))
        suffixes = self.prompt_suffixes or ((),) * len(ends)
        for suffix, completion, end, advantage in zip(
            suffixes, self.completions, ends, self.advantages, strict=True
        ):
            if advantage is not None:
                row = (*suffix, *completion[:end]), len(suffix)
                weighted[row] = weighted.get(row, 0.0) + advantage * weights[len(completion)]
        return weighted


def count_trainable_tokens(logprobs: Sequence[float], freeze_prob: float) -> int:
    """Tokens up to the last that was drawn with less than the probability `freeze_prob`; at least one.

    Most of a plan is form that the policy writes with a probability near 1, and a token's gradient is as small as the
    distance of its probability from 1. If the probability falls again, the token counts again.
    """
    uncertain = [count for count, value in enumerate(logprobs, 1) if math.exp(value) < freeze_prob]
    return max(uncertain, default=1)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some groups as tensors."""

    prompt_QP: Tensor
    """All but the last token of each prompt."""
    prompt_lengths_Q: Tensor
    places_N: Tensor
    """Where token n lies in the flattened [Q, G, T]; G counts different rows."""
    size_QGT: torch.Size
    inputs_N: Tensor
    """The token before each target; that of the first is the last of the prompt."""
    targets_N: Tensor
    weighted_advantages_N: Tensor
    """Advantage times weight, summed over the completions that the token stands for; 0 in a prompt suffix."""


def micro_batches(
    groups: Sequence[Group], token_weights: TokenWeights, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """The batch in parts of `questions` groups each.

    Groups without a gradient are not among them, and equal completions of a group are one row, but all of their
    tokens count in the weights: that changes the work and not the result. One group at a time needs no padding of
    prompts and stays in the processor's cache.
    """
    lengths = [length for group in groups for length in group.lengths]
    weights = dict(zip(lengths, token_weights(lengths, max_tokens=max_tokens), strict=True))
    alive = [(group.prompt, group.weighted_advantages(weights)) for group in groups if not group.dead]
    return [_collate(alive[at : at + questions]) for at in range(0, len(alive), questions)]


def _collate(groups: Sequence[tuple[tuple[int, ...], Mapping[Row, float]]]) -> MicroBatch:
    """Of prompts, each with its rows and the weighted advantage of each row."""
    prompt_QP, lengths_Q = pad_prompts([prompt for prompt, _ in groups])
    height = max(len(rows) for _, rows in groups)
    longest = max(len(tokens) for _, rows in groups for tokens, _ in rows)
    places: list[Tensor] = []
    inputs: list[int] = []
    targets: list[int] = []
    weighted_advantages: list[float] = []
    for q, (prompt, rows) in enumerate(groups):
        for g, ((tokens, suffix), weighted) in enumerate(rows.items()):
            start = (q * height + g) * longest
            places.append(torch.arange(start, start + len(tokens)))
            inputs += (prompt[-1], *tokens[:-1])
            targets += tokens
            weighted_advantages += [0.0] * suffix + [weighted] * (len(tokens) - suffix)
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        places_N=torch.cat(places),
        size_QGT=torch.Size((len(groups), height, longest)),
        inputs_N=torch.tensor(inputs),
        targets_N=torch.tensor(targets),
        weighted_advantages_N=torch.tensor(weighted_advantages),
    )
