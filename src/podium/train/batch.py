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


@dataclass(slots=True)
class RowTerms:
    """What the loss needs of a row, summed over the completions that it stands for."""

    weight: float = 0.0
    """Of each of its tokens."""
    gain: float = 0.0
    """Advantage times weight, of the completions with a positive advantage."""
    loss: float = 0.0
    """The same of those with a negative one: the clip treats the two differently."""
    old_logprobs: tuple[float, ...] = ()
    """Of its tokens that are trained on; empty: not known."""
    reference_logprobs: tuple[float, ...] = ()
    """Likewise; empty: there is no KL term."""

    @property
    def weighted_advantage(self) -> float:
        """Advantage times weight, of all its completions."""
        return self.gain + self.loss


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

    old_logprobs: tuple[tuple[float, ...], ...] | None = None
    """Of each token of each completion, under the policy that sampled it; None: that is the one that is trained."""
    reference_logprobs: tuple[tuple[float, ...], ...] | None = None
    """The same under the policy that training started from; None: there is no KL term."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of the completions that count."""
        pairs = zip(self.completions, self.advantages, strict=True)
        return tuple(len(completion) for completion, advantage in pairs if advantage is not None)

    @property
    def dead(self) -> bool:
        """Whether no completion is better than another, so that the group has no gradient but that of a KL term."""
        return not any(self.advantages)

    def rows(self, weights: Mapping[int, float]) -> dict[Row, RowTerms]:
        """Each different row once, with the sums over the completions that it stands for.

        The loss is linear in these sums, so the gradient is that of all completions: a token that several of them begin
        with had the same probability in each.

        Args:
            weights: of a token, by the length of its completion.
        """
        rows: dict[Row, RowTerms] = {}
        ends = self.trainable_tokens or tuple(map(len, self.completions))
        suffixes = self.prompt_suffixes or ((),) * len(ends)
        olds = self.old_logprobs or ((),) * len(ends)
        references = self.reference_logprobs or ((),) * len(ends)
        for suffix, completion, end, advantage, old, reference in zip(
            suffixes, self.completions, ends, self.advantages, olds, references, strict=True
        ):
            if advantage is not None:
                weight = weights[len(completion)]
                row = (*suffix, *completion[:end]), len(suffix)
                terms = rows.setdefault(
                    row, RowTerms(old_logprobs=old[:end], reference_logprobs=reference[:end])
                )
                terms.weight += weight
                terms.gain += max(advantage, 0.0) * weight
                terms.loss += min(advantage, 0.0) * weight
        return rows


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
    gains_N: Tensor
    """Advantage times weight, summed over the completions that the token stands for and whose advantage is positive; 0
    in a prompt suffix."""
    losses_N: Tensor
    """The same of the completions whose advantage is negative."""
    token_weights_N: Tensor
    """The weights alone, summed and 0 likewise."""
    old_logprobs_N: Tensor | None
    """Under the policy that sampled; 0 in a prompt suffix; None: not known."""
    reference_logprobs_N: Tensor | None
    """Under the reference; 0 in a prompt suffix; None: there is no KL term."""

    @property
    def weighted_advantages_N(self) -> Tensor:  # noqa: N802 (a tensor, named with its shape)
        """Advantage times weight, summed over all completions that the token stands for."""
        return self.gains_N + self.losses_N


def micro_batches(
    groups: Sequence[Group], token_weights: TokenWeights, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """The batch in parts of `questions` groups each.

    Groups without a gradient are left out, and equal completions of a group are one row, but all of their
    tokens count in the weights: that changes the work and not the result. One group at a time needs no padding of
    prompts and stays in the processor's cache.
    """
    lengths = [length for group in groups for length in group.lengths]
    weights = dict(zip(lengths, token_weights(lengths, max_tokens=max_tokens), strict=True))
    alive = [
        (group.prompt, group.rows(weights))
        for group in groups
        if group.lengths and (group.reference_logprobs or not group.dead)
    ]
    return [_collate(alive[at : at + questions]) for at in range(0, len(alive), questions)]


def _collate(groups: Sequence[tuple[tuple[int, ...], Mapping[Row, RowTerms]]]) -> MicroBatch:
    """Of prompts, each with its rows."""
    prompt_QP, lengths_Q = pad_prompts([prompt for prompt, _ in groups])
    height = max(len(rows) for _, rows in groups)
    longest = max(len(tokens) for _, rows in groups for tokens, _ in rows)
    places: list[Tensor] = []
    inputs: list[int] = []
    targets: list[int] = []
    gains: list[float] = []
    losses: list[float] = []
    olds: list[float] = []
    token_weights: list[float] = []
    references: list[float] = []
    for q, (prompt, rows) in enumerate(groups):
        for g, ((tokens, suffix), terms) in enumerate(rows.items()):
            start = (q * height + g) * longest
            places.append(torch.arange(start, start + len(tokens)))
            inputs += (prompt[-1], *tokens[:-1])
            targets += tokens
            count = len(tokens) - suffix
            gains += [0.0] * suffix + [terms.gain] * count
            losses += [0.0] * suffix + [terms.loss] * count
            token_weights += [0.0] * suffix + [terms.weight] * count
            if terms.old_logprobs:
                olds += (*[0.0] * suffix, *terms.old_logprobs)
            if terms.reference_logprobs:
                references += (*[0.0] * suffix, *terms.reference_logprobs)
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        places_N=torch.cat(places),
        size_QGT=torch.Size((len(groups), height, longest)),
        inputs_N=torch.tensor(inputs),
        targets_N=torch.tensor(targets),
        gains_N=torch.tensor(gains),
        losses_N=torch.tensor(losses),
        old_logprobs_N=torch.tensor(olds) if olds else None,
        token_weights_N=torch.tensor(token_weights),
        reference_logprobs_N=torch.tensor(references) if references else None,
    )
