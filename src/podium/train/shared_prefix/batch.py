"""Makes the tensors of a micro-batch from groups of completions.

The rows of a group form a tree: equal tokens after the same beginning are one token of the micro-batch, whose advantage
is the sum over its rows. The tokens are packed one after another, and only attention sees the padded [G, T]. A
completion without an advantage (its workers failed) is left out, as if it had never been sampled. A token that was
drawn with probability 1, for instance since a guide allowed no other, is neither trained on nor counted in the KL term,
since its policy gradient is 0. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.objective import TokenWeights
from podium.train.shared_prefix.sampler import common_prefix, pad_prompts


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One completion of a group, with what the update reads of it. The prompts of a group begin alike."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    """The token ids of the completion, at least one."""
    advantage: float | None
    """None if the row is left out."""
    trainable_tokens: int | None = None
    """How many first tokens are trained on (`count_trainable_tokens`). If it is None, all are."""
    old_logprobs: tuple[float, ...] = ()
    """Log-probabilities of the tokens under the policy that sampled them. Empty if the trained policy itself did."""
    reference_logprobs: tuple[float, ...] | None = None
    """Log-probabilities of the tokens under the policy that training started from. None if there is no KL term."""


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
    """One group of the batch, as tensors."""

    prompt_1P: Tensor
    """All but the last token of the common beginning of the prompts."""
    cells_N: Tensor
    """The cell of token n in the flattened [G, T]. If several rows begin with the token, its first cell."""
    grid_GT: Tensor
    """The token in each cell, and 0 in the padding. G counts the rows that are not the beginning of another row."""
    paths: list[list[int]]
    """The numbers n of the tokens of each completion that has an advantage."""
    inputs_N: Tensor
    """The token before each target. For a row's first target, it is the last token of the prompt."""
    targets_N: Tensor
    positive_advantages_N: Tensor
    """The sum of advantage times weight over the token's completions with a positive advantage. It is 0 in a prompt
    suffix."""
    negative_advantages_N: Tensor
    """The sum over those with a negative advantage. The clip treats the two sums differently."""
    token_weights_N: Tensor
    """The sum of weights over the token's completions."""
    old_logprobs_N: Tensor | None
    """Log-probabilities under the policy that sampled the tokens, 0 in a prompt suffix. None if they are unknown."""
    reference_logprobs_N: Tensor | None
    """Log-probabilities under the reference policy, 0 in a prompt suffix. None if there is no KL term."""


def micro_batches(
    groups: Sequence[Sequence[TrainingRow]], token_weights: TokenWeights, *, max_tokens: int
) -> list[MicroBatch]:
    """Make a micro-batch of each group that has a gradient.

    Completions of a group share their common first tokens. The token weights still count every completion, so this
    saves work and changes no result. With one group at a time no prompt is padded, and the tensors stay in the
    processor's cache.
    """
    lengths = [len(row.tokens) for group in groups for row in group if row.advantage is not None]
    weights = dict(zip(lengths, token_weights(lengths, max_tokens=max_tokens), strict=True))
    return [_collate(group, weights) for group in groups if any(map(_has_gradient, group))]


def _has_gradient(row: TrainingRow) -> bool:
    """If all rewards of a group are equal, all advantages are 0, and only a KL term has a gradient."""
    return bool(row.advantage) or (row.advantage is not None and row.reference_logprobs is not None)


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


def _collate(group: Sequence[TrainingRow], weights: Mapping[int, float]) -> MicroBatch:
    """One micro-batch. `weights` has the weight of a token by the length of its completion."""
    prompt = common_prefix([row.prompt for row in group])
    tokens: list[_Token] = []
    paths = _add_tree(prompt, group, weights, tokens)
    leaves = _leaves(paths)
    grid_GT = torch.zeros(len(leaves), max(map(len, leaves)), dtype=torch.long)
    for g, path in enumerate(leaves):
        grid_GT[g, : len(path)] = torch.tensor(path)
    cells = {n: cell for cell, n in reversed(list(enumerate(grid_GT.flatten().tolist())))}

    def of_tokens(name: str) -> Tensor:
        return torch.tensor([getattr(token, name) for token in tokens])

    has_old = any(row.old_logprobs for row in group)
    has_reference = any(row.reference_logprobs is not None for row in group)
    return MicroBatch(
        prompt_1P=pad_prompts([prompt])[0],
        cells_N=torch.tensor([cells[n] for n in range(len(tokens))]),
        grid_GT=grid_GT,
        paths=paths,
        inputs_N=of_tokens("input"),
        targets_N=of_tokens("target"),
        positive_advantages_N=of_tokens("positive_advantage"),
        negative_advantages_N=of_tokens("negative_advantage"),
        token_weights_N=of_tokens("weight"),
        old_logprobs_N=of_tokens("old_logprob") if has_old else None,
        reference_logprobs_N=of_tokens("reference_logprob") if has_reference else None,
    )


def _add_tree(
    prompt: Sequence[int],
    group: Sequence[TrainingRow],
    weights: Mapping[int, float],
    tokens: list[_Token],
) -> list[list[int]]:
    """Append the tokens of the group, and each common beginning only once. Returns the numbers of the tokens of each
    completion that has an advantage."""
    children: dict[tuple[int, int], int] = {}
    paths = []
    for row in group:
        if row.advantage is None:
            continue
        weight, suffix = weights[len(row.tokens)], row.prompt[len(prompt) :]
        targets = (*suffix, *row.tokens[: row.trainable_tokens])
        path: list[int] = []
        for index, target in enumerate(targets):
            parent = path[-1] if path else -1
            number = children.setdefault((parent, target), len(tokens))
            if number == len(tokens):
                tokens.append(_Token(targets[index - 1] if index else prompt[-1], target))
            path.append(number)
            drawn = index - len(suffix)
            if drawn >= 0 and not (row.old_logprobs and row.old_logprobs[drawn] == 0):
                token = tokens[number]
                token.weight += weight
                token.positive_advantage += max(row.advantage, 0.0) * weight
                token.negative_advantage += min(row.advantage, 0.0) * weight
                if row.old_logprobs:
                    token.old_logprob = row.old_logprobs[drawn]
                if row.reference_logprobs:
                    token.reference_logprob = row.reference_logprobs[drawn]
        paths.append(path)
    return paths


def _leaves(paths: Sequence[list[int]]) -> list[list[int]]:
    """The paths that are not the beginning of another path, each once."""
    inner = {number for path in paths for number in path[:-1]}
    return list({path[-1]: path for path in paths if path[-1] not in inner}.values())
