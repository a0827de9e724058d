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

from podium.train.loss import LossType, token_weights
from podium.train.sampler import pad_prompts

Row = tuple[tuple[int, ...], int]
"""Tokens that follow a prompt, and how many of them, from the first, were given and are not learned."""


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt, with their advantages."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    """Token ids; none is empty."""
    advantages: tuple[float | None, ...]
    """None: left out."""
    given: tuple[tuple[int, ...], ...] | None = None
    """What stands between the prompt and each completion; None: nothing."""
    open: tuple[int, ...] | None = None
    """How many tokens of each, from the first, have anything to learn (`trainable_tokens`); None: all."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of the completions that count."""
        pairs = zip(self.completions, self.advantages, strict=True)
        return tuple(len(completion) for completion, advantage in pairs if advantage is not None)

    @property
    def dead(self) -> bool:
        """Whether no completion is better than another, so that the group has no gradient."""
        return not any(self.advantages)

    def pulls(self, weights: Mapping[int, float]) -> dict[Row, float]:
        """Each different row once, with the sum of its advantages times weights: the gradient is linear in them.

        Args:
            weights: of a token, by the length of its completion.
        """
        pulls: dict[Row, float] = {}
        ends = self.open or tuple(map(len, self.completions))
        given = self.given or ((),) * len(ends)
        for before, completion, end, advantage in zip(
            given, self.completions, ends, self.advantages, strict=True
        ):
            if advantage is not None:
                row = (*before, *completion[:end]), len(before)
                pulls[row] = pulls.get(row, 0.0) + advantage * weights[len(completion)]
        return pulls


def trainable_tokens(logprobs: Sequence[float], sure: float) -> int:
    """Tokens up to the last that was drawn with less than the probability `sure`; at least one.

    Those after it are a form that the policy is sure of. Their gradient is as small as their doubt, and most of a plan
    is such form; should they become unsure, they count again.
    """
    doubted = [place for place, value in enumerate(logprobs, 1) if math.exp(value) < sure]
    return max(doubted, default=1)


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
    """Advantage times weight, summed over the completions that the token stands for; 0 for what was given."""


def micro_batches(
    groups: Sequence[Group], loss_type: LossType, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """The batch in parts of `questions` groups each.

    Groups without a gradient are not among them, and equal completions of a group are one row, but all of their
    tokens count in the weights: that changes the work and not the result. One group at a time needs no padding of
    prompts and stays in the processor's cache.
    """
    lengths = [length for group in groups for length in group.lengths]
    weights = dict(zip(lengths, token_weights(lengths, loss_type, max_tokens=max_tokens), strict=True))
    alive = [(group.prompt, group.pulls(weights)) for group in groups if not group.dead]
    return [_collate(alive[at : at + questions]) for at in range(0, len(alive), questions)]


def _collate(groups: Sequence[tuple[tuple[int, ...], Mapping[Row, float]]]) -> MicroBatch:
    """Of prompts, each with its rows and how hard each is pulled."""
    prompt_QP, lengths_Q = pad_prompts([prompt for prompt, _ in groups])
    height = max(len(rows) for _, rows in groups)
    longest = max(len(tokens) for _, rows in groups for tokens, _ in rows)
    places: list[Tensor] = []
    inputs: list[int] = []
    targets: list[int] = []
    pulls: list[float] = []
    for q, (prompt, rows) in enumerate(groups):
        for g, ((tokens, given), pull) in enumerate(rows.items()):
            start = (q * height + g) * longest
            places.append(torch.arange(start, start + len(tokens)))
            inputs += (prompt[-1], *tokens[:-1])
            targets += tokens
            pulls += [0.0] * given + [pull] * (len(tokens) - given)
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        places_N=torch.cat(places),
        size_QGT=torch.Size((len(groups), height, longest)),
        inputs_N=torch.tensor(inputs),
        targets_N=torch.tensor(targets),
        weighted_advantages_N=torch.tensor(pulls),
    )
