"""Makes the tensors of a micro-batch from groups of completions.

The rows of a group form a tree: equal tokens after the same beginning are one token of the micro-batch, whose advantage
is the sum over its rows. The tokens are packed one after another, and only attention sees the padded [Q, G, T]. A
completion without an advantage (its workers failed) is left out, as if it had never been sampled. A token that was
drawn with probability 1, for instance since a guide allowed no other, is neither trained on nor counted in the KL term,
since its policy gradient is 0. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.objective import TokenWeights
from podium.train.shared_prefix.sampler import pad_prompts

TokenRow = tuple[tuple[int, ...], int]
"""The tokens after a prompt, and how many of the first belong to the prompt's suffix, which is not trained on."""


@dataclass(slots=True)
class RowTerms:
    """What the loss reads of a row. Equal completions share a row, so weights and advantages are sums over them."""

    weight: float = 0.0
    """The weight of each token of the row."""
    positive_advantage: float = 0.0
    """The sum of advantage times weight over the completions with a positive advantage."""
    negative_advantage: float = 0.0
    """The sum over the completions with a negative advantage. The clip treats the two sums differently."""
    old_logprobs: tuple[float, ...] = ()
    """Log-probabilities of the trained tokens under the policy that sampled them. They are empty if they are
    unknown."""
    reference_logprobs: tuple[float, ...] = ()
    """Log-probabilities of these tokens under the reference policy. They are empty if there is no KL term."""


@dataclass(frozen=True, slots=True)
class Group:
    """The completions of one prompt, with their advantages."""

    prompt: tuple[int, ...]
    completions: tuple[tuple[int, ...], ...]
    """The token ids of each completion. No completion is empty."""
    advantages: tuple[float | None, ...]
    """The advantage of each completion. A completion whose advantage is None is left out."""
    prompt_suffixes: tuple[tuple[int, ...], ...] | None = None
    """The end of each completion's prompt, which the other prompts do not share. None if all prompts are equal."""
    trainable_tokens: tuple[int, ...] | None = None
    """How many first tokens of each completion are trained on (`count_trainable_tokens`). If it is None, all are."""

    old_logprobs: tuple[tuple[float, ...], ...] | None = None
    """Log-probabilities of each completion's tokens under the policy that sampled them. None if the trained policy
    itself sampled them."""
    reference_logprobs: tuple[tuple[float, ...], ...] | None = None
    """Log-probabilities of these tokens under the policy that training started from. None if there is no KL term."""

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
        """Each distinct row once. Equal completions share a row, whose terms are sums over them.

        Equal completions have equal probabilities, and the loss is linear in these sums, so the gradient is the same as
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


def count_trainable_tokens(logprobs: Sequence[float], skip_suffix_min_prob: float) -> int:
    """How many tokens to train on: up to the last token whose probability was below `skip_suffix_min_prob`, at least
    one.

    Most tokens of a plan are fixed syntax, which the policy writes with a probability near 1. The gradient of such a
    token, if no guide forced it, is as small as the distance of its probability from 1. If the probability falls, the
    token is trained on again.
    """
    uncertain = [count for count, value in enumerate(logprobs, 1) if math.exp(value) < skip_suffix_min_prob]
    return max(uncertain, default=1)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Some groups of the batch, as tensors."""

    prompt_QP: Tensor
    """All but the last token of each prompt."""
    prompt_lengths_Q: Tensor
    cells_N: Tensor
    """The cell of token n in the flattened [Q, G, T]. If several rows begin with the token, its first cell."""
    grid_QGT: Tensor
    """The token in each cell, and 0 in the padding. G counts the rows that are not the beginning of another row."""
    rows: tuple[dict[TokenRow, list[int]], ...]
    """The rows of each question, each with the numbers n of its tokens."""
    inputs_N: Tensor
    """The token before each target. For a row's first target, it is the last token of the prompt."""
    targets_N: Tensor
    positive_advantages_N: Tensor
    """The sum of `RowTerms.positive_advantage` over the token's rows. It is 0 in a prompt suffix."""
    negative_advantages_N: Tensor
    """The sum of `RowTerms.negative_advantage` over the token's rows."""
    token_weights_N: Tensor
    """The sum of `RowTerms.weight` over the token's rows."""
    old_logprobs_N: Tensor | None
    """Log-probabilities under the policy that sampled the tokens, 0 in a prompt suffix. None if they are unknown."""
    reference_logprobs_N: Tensor | None
    """Log-probabilities under the reference policy, 0 in a prompt suffix. None if there is no KL term."""


def micro_batches(
    groups: Sequence[Group], token_weights: TokenWeights, *, max_tokens: int, questions: int = 1
) -> list[MicroBatch]:
    """Split the batch into micro-batches of `questions` groups each.

    Groups without a gradient are left out, and completions of a group share their common first tokens. The token
    weights still count every completion, so this saves work and changes no result. With one group at a time no prompt
    is padded, and the tensors stay in the processor's cache.
    """
    lengths = [length for group in groups for length in group.lengths]
    weights = dict(zip(lengths, token_weights(lengths, max_tokens=max_tokens), strict=True))
    with_gradient = [
        (group.prompt, group.rows(weights))
        for group in groups
        if group.lengths and (group.reference_logprobs or not group.zero_variance)
    ]
    return [_collate(with_gradient[at : at + questions]) for at in range(0, len(with_gradient), questions)]


@dataclass(slots=True)
class _Token:
    """A token of a micro-batch, with what the loss reads of it."""

    input: int
    target: int
    weight: float = 0.0
    positive_advantage: float = 0.0
    negative_advantage: float = 0.0
    old_logprob: float = 0.0
    reference_logprob: float = 0.0


def _collate(groups: Sequence[tuple[tuple[int, ...], Mapping[TokenRow, RowTerms]]]) -> MicroBatch:
    """One micro-batch of prompts, each with its rows."""
    prompt_QP, lengths_Q = pad_prompts([prompt for prompt, _ in groups])
    tokens: list[_Token] = []
    paths = tuple(_add_tree(prompt, rows, tokens) for prompt, rows in groups)
    leaves = [_leaves(rows.values()) for rows in paths]
    size = len(groups), max(map(len, leaves)), max(len(path) for rows in leaves for path in rows)
    grid_QGT = torch.zeros(size, dtype=torch.long)
    for q, rows in enumerate(leaves):
        for g, path in enumerate(rows):
            grid_QGT[q, g, : len(path)] = torch.tensor(path)
    cells = {n: cell for cell, n in reversed(list(enumerate(grid_QGT.flatten().tolist())))}
    terms = [terms for _, rows in groups for terms in rows.values()]
    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        cells_N=torch.tensor([cells[n] for n in range(len(tokens))]),
        grid_QGT=grid_QGT,
        rows=paths,
        inputs_N=torch.tensor([token.input for token in tokens]),
        targets_N=torch.tensor([token.target for token in tokens]),
        positive_advantages_N=torch.tensor([token.positive_advantage for token in tokens]),
        negative_advantages_N=torch.tensor([token.negative_advantage for token in tokens]),
        token_weights_N=torch.tensor([token.weight for token in tokens]),
        old_logprobs_N=torch.tensor([token.old_logprob for token in tokens])
        if any(row.old_logprobs for row in terms)
        else None,
        reference_logprobs_N=torch.tensor([token.reference_logprob for token in tokens])
        if any(row.reference_logprobs for row in terms)
        else None,
    )


def _add_tree(
    prompt: tuple[int, ...], rows: Mapping[TokenRow, RowTerms], tokens: list[_Token]
) -> dict[TokenRow, list[int]]:
    """Append the tokens of one question, and each common beginning only once. Returns the numbers of each row's
    tokens."""
    children: dict[tuple[int, int], int] = {}
    paths: dict[TokenRow, list[int]] = {}
    for row, terms in rows.items():
        targets, suffix = row
        path: list[int] = []
        for index, target in enumerate(targets):
            parent = path[-1] if path else -1
            number = children.setdefault((parent, target), len(tokens))
            if number == len(tokens):
                tokens.append(_Token(prompt[-1] if index == 0 else targets[index - 1], target))
            path.append(number)
            drawn = index - suffix
            if drawn >= 0 and not (terms.old_logprobs and terms.old_logprobs[drawn] == 0):
                token = tokens[number]
                token.weight += terms.weight
                token.positive_advantage += terms.positive_advantage
                token.negative_advantage += terms.negative_advantage
                if terms.old_logprobs:
                    token.old_logprob = terms.old_logprobs[drawn]
                if terms.reference_logprobs:
                    token.reference_logprob = terms.reference_logprobs[drawn]
        paths[row] = path
    return paths


def _leaves(paths: Iterable[list[int]]) -> list[list[int]]:
    """The paths that are not the beginning of another path, each once."""
    paths = list(paths)
    inner = {number for path in paths for number in path[:-1]}
    return list({path[-1]: path for path in paths if path[-1] not in inner}.values())
