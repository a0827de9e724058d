"""Makes the tensors of a micro-batch from groups of completions.

The tokens of all rows are packed one after another; only attention sees the padded [Q, G, T]. A completion without an
advantage (its workers failed) is left out, as if it had never been sampled. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.objective import TokenWeights
from podium.train.sampler import pad_prompts

TokenRow = tuple[tuple[int, ...], int]
"""The tokens that follow a prompt, and the number of prompt-suffix tokens at their start, which are not trained on."""


@dataclass(slots=True)
class RowTerms:
    """What the loss reads of a row. Equal completions share a row, so its weights and advantages are sums over them."""

    weight: float = 0.0
    """Weight of each token."""
    positive_advantage: float = 0.0
    """Advantage times weight, summed over the completions with a positive advantage."""
    negative_advantage: float = 0.0
    """The same for a negative advantage. The two are kept apart because the clip treats them differently."""
    old_logprobs: tuple[float, ...] = ()
    """Log-probabilities of the trained tokens under the policy that sampled them; empty: not known."""
    reference_logprobs: tuple[float, ...] = ()
    """The same under the reference; empty: there is no KL term."""

    @property
    def weighted_advantage(self) -> float:
        """Advantage times weight, summed over all completions of the row."""
        return self.positive_advantage + self.negative_advantage


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt, with their advantages."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    """Token ids; none is empty."""
    advantages: tuple[float | None, ...]
    """None: the completion is left out."""
    prompt_suffixes: tuple[tuple[int, ...], ...] | None = None
    """For each completion, the end of its prompt, which the other prompts do not share; None: all prompts are equal."""
    trainable_tokens: tuple[int, ...] | None = None
    """How many tokens of each completion, from the first, are trained on (`count_trainable_tokens`); None: all."""

    old_logprobs: tuple[tuple[float, ...], ...] | None = None
    """Log-probabilities of each completion's tokens under the policy that sampled them; None: the policy that is
    trained sampled them."""
    reference_logprobs: tuple[tuple[float, ...], ...] | None = None
    """The same under the policy that training started from; None: there is no KL term."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths in tokens of the completions that have an advantage."""
        pairs = zip(self.completions, self.advantages, strict=True)
        return tuple(len(completion) for completion, advantage in pairs if advantage is not None)

    @property
    def zero_variance(self) -> bool:
        """Whether all rewards are equal. Then all advantages are 0, and only a KL term gives the group a gradient."""
        return not any(self.advantages)

    def rows(self, weights: Mapping[int, float]) -> dict[TokenRow, RowTerms]:
        """Each distinct row once. Equal completions share a row, and its terms are sums over them.

        Equal completions have equal probabilities and the loss is linear in these sums, so the gradient is the same as
        with one row for each completion.

        Args:
            weights: the weight of a token, by the length of its completion.
        """
        rows: dict[TokenRow, RowTerms] = {}
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
                terms.positive_advantage += max(advantage, 0.0) * weight
                terms.negative_advantage += min(advantage, 0.0) * weight
        return rows


def count_trainable_tokens(logprobs: Sequence[float], freeze_prob: float) -> int:
    """How many tokens to train on: up to the last one drawn with a probability below `freeze_prob`; at least one.

    Most tokens of a plan are fixed syntax, which the policy writes with a probability near 1. The gradient of such a
    token is as small as the distance of its probability from 1. If the probability falls, the token is trained on
    again.
    """
    uncertain = [count for count, value in enumerate(logprobs, 1) if math.exp(value) < freeze_prob]
    return max(uncertain, default=1)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some groups of the batch, as tensors."""

    prompt_QP: Tensor
    """All but the last token of each prompt."""
    prompt_lengths_Q: Tensor
    places_N: Tensor
    """Where token n lies in the flattened [Q, G, T]; G counts distinct rows."""
    size_QGT: torch.Size
    inputs_N: Tensor
    """The token before each target. Before a row's first target that is the last token of the prompt."""
    targets_N: Tensor
    positive_advantages_N: Tensor
    """`RowTerms.positive_advantage` of each token's row; 0 in a prompt suffix."""
    negative_advantages_N: Tensor
    """`RowTerms.negative_advantage` of each token's row; 0 in a prompt suffix."""
    token_weights_N: Tensor
    """`RowTerms.weight` of each token's row; 0 in a prompt suffix."""
    old_logprobs_N: Tensor | None
    """Under the policy that sampled the tokens; 0 in a prompt suffix; None: not known."""
    reference_logprobs_N: Tensor | None
    """Under the reference; 0 in a prompt suffix; None: there is no KL term."""

    @property
    def weighted_advantages_N(self) -> Tensor:  # noqa: N802 (a tensor, named with its shape)
        """`RowTerms.weighted_advantage` of each token's row; 0 in a prompt suffix."""
        return self.positive_advantages_N + self.negative_advantages_N


def micro_batches(
    groups: Sequence[Group], token_weights: TokenWeights, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """Split the batch into micro-batches of `questions` groups each.

    Groups without a gradient are left out, and equal completions of a group share one row. The token weights still
    count every completion, so this saves work and changes no result. With one group at a time no prompt is padded, and
    the tensors stay in the processor's cache.
    """
    lengths = [length for group in groups for length in group.lengths]
    weights = dict(zip(lengths, token_weights(lengths, max_tokens=max_tokens), strict=True))
    with_gradient = [
        (group.prompt, group.rows(weights))
        for group in groups
        if group.lengths and (group.reference_logprobs or not group.zero_variance)
    ]
    return [_collate(with_gradient[at : at + questions]) for at in range(0, len(with_gradient), questions)]


def _collate(groups: Sequence[tuple[tuple[int, ...], Mapping[TokenRow, RowTerms]]]) -> MicroBatch:
    """One micro-batch of prompts, each with its rows."""
    prompt_QP, lengths_Q = pad_prompts([prompt for prompt, _ in groups])
    height = max(len(rows) for _, rows in groups)
    longest = max(len(tokens) for _, rows in groups for tokens, _ in rows)
    places: list[Tensor] = []
    inputs: list[int] = []
    targets: list[int] = []
    positive: list[float] = []
    negative: list[float] = []
    old_logprobs: list[float] = []
    token_weights: list[float] = []
    reference_logprobs: list[float] = []
    for q, (prompt, rows) in enumerate(groups):
        for g, ((tokens, suffix), terms) in enumerate(rows.items()):
            start = (q * height + g) * longest
            places.append(torch.arange(start, start + len(tokens)))
            inputs += (prompt[-1], *tokens[:-1])
            targets += tokens
            count = len(tokens) - suffix
            positive += [0.0] * suffix + [terms.positive_advantage] * count
            negative += [0.0] * suffix + [terms.negative_advantage] * count
            token_weights += [0.0] * suffix + [terms.weight] * count
            if terms.old_logprobs:
                old_logprobs += (*[0.0] * suffix, *terms.old_logprobs)
            if terms.reference_logprobs:
                reference_logprobs += (*[0.0] * suffix, *terms.reference_logprobs)
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        places_N=torch.cat(places),
        size_QGT=torch.Size((len(groups), height, longest)),
        inputs_N=torch.tensor(inputs),
        targets_N=torch.tensor(targets),
        positive_advantages_N=torch.tensor(positive),
        negative_advantages_N=torch.tensor(negative),
        old_logprobs_N=torch.tensor(old_logprobs) if old_logprobs else None,
        token_weights_N=torch.tensor(token_weights),
        reference_logprobs_N=torch.tensor(reference_logprobs) if reference_logprobs else None,
    )
