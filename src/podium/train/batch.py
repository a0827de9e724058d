"""From groups of completions to the tensors of a micro-batch.

Real tokens are packed one after another; only attention sees the padded [Q, G, T]. A completion without an
advantage (its workers failed) is left out as if it had never been sampled. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.loss import LossType, token_weights
from podium.train.sampler import pad_prompts


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt, with their advantages."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    """Token ids; none is empty."""
    advantages: tuple[float | None, ...]
    """None: left out."""

    @property
    def counted(self) -> tuple[tuple[tuple[int, ...], float], ...]:
        """The completions that count, each with its advantage."""
        pairs = zip(self.completions, self.advantages, strict=True)
        return tuple((completion, advantage) for completion, advantage in pairs if advantage is not None)

    @property
    def dead(self) -> bool:
        """Whether no completion is better than another, so that the group has no gradient."""
        return not any(self.advantages)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some groups as tensors."""

    prompt_QP: Tensor
    """All but the last token of each prompt."""
    prompt_lengths_Q: Tensor
    places_N: Tensor
    """Where token n lies in the flattened [Q, G, T]."""
    size_QGT: torch.Size
    inputs_N: Tensor
    """The token before each target; that of the first is the last of the prompt."""
    targets_N: Tensor
    advantages_N: Tensor
    weights_N: Tensor


def micro_batches(
    groups: Sequence[Group], loss_type: LossType, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """The batch in parts of `questions` groups each.

    Groups without a gradient are not among them, but their tokens count in the weights: leaving them out
    changes the work and not the result. One group at a time needs no padding of prompts and stays in the
    processor's cache.
    """
    lengths = [len(completion) for group in groups for completion, _ in group.counted]
    weights = iter(token_weights(lengths, loss_type, max_tokens=max_tokens))
    weighed = [(group, [next(weights) for _ in group.counted]) for group in groups]
    alive = [(group, weight) for group, weight in weighed if not group.dead]
    return [_collate(alive[at : at + questions]) for at in range(0, len(alive), questions)]


def _collate(groups: Sequence[tuple[Group, Sequence[float]]]) -> MicroBatch:
    prompt_QP, lengths_Q = pad_prompts([group.prompt for group, _ in groups])
    rows = max(len(group.counted) for group, _ in groups)
    longest = max(len(completion) for group, _ in groups for completion, _ in group.counted)
    places: list[Tensor] = []
    inputs: list[int] = []
    targets: list[int] = []
    advantages: list[float] = []
    weights: list[float] = []
    for q, (group, row_weights) in enumerate(groups):
        for g, ((completion, advantage), weight) in enumerate(zip(group.counted, row_weights, strict=True)):
            start = (q * rows + g) * longest
            places.append(torch.arange(start, start + len(completion)))
            inputs += (group.prompt[-1], *completion[:-1])
            targets += completion
            advantages += [advantage] * len(completion)
            weights += [weight] * len(completion)
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        places_N=torch.cat(places),
        size_QGT=torch.Size((len(groups), rows, longest)),
        inputs_N=torch.tensor(inputs),
        targets_N=torch.tensor(targets),
        advantages_N=torch.tensor(advantages),
        weights_N=torch.tensor(weights),
    )
