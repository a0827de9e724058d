"""Makes the tensors of a micro-batch from groups of completions.

The rows of a group form a tree: equal tokens after the same beginning are one token of the micro-batch, whose advantage
is the sum over its rows. The tokens are packed one after another, and only attention sees the padded [Q, G, T]. A
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
from podium.train.shared_prefix.sampler import pad_prompts


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
    paths: tuple[list[list[int]], ...]
    """The numbers n of the tokens of each completion that has an advantage, question by question."""
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
        group for group in groups if group.lengths and (group.reference_logprobs or not group.zero_variance)
    ]
    return [
        _collate(with_gradient[at : at + questions], weights)
        for at in range(0, len(with_gradient), questions)
    ]


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


def _collate(groups: Sequence[Group], weights: Mapping[int, float]) -> MicroBatch:
    """One micro-batch. `weights` has the weight of a token by the length of its completion."""
    prompt_QP, lengths_Q = pad_prompts([group.prompt for group in groups])
    tokens: list[_Token] = []
    paths = tuple(_add_tree(group, weights, tokens) for group in groups)
    leaves = list(map(_leaves, paths))
    size = len(groups), max(map(len, leaves)), max(len(path) for rows in leaves for path in rows)
    grid_QGT = torch.zeros(size, dtype=torch.long)
    for q, rows in enumerate(leaves):
        for g, path in enumerate(rows):
            grid_QGT[q, g, : len(path)] = torch.tensor(path)
    cells = {n: cell for cell, n in reversed(list(enumerate(grid_QGT.flatten().tolist())))}

    def of_tokens(name: str) -> Tensor:
        return torch.tensor([getattr(token, name) for token in tokens])

    return MicroBatch(
        prompt_QP=prompt_QP,
        prompt_lengths_Q=lengths_Q,
        cells_N=torch.tensor([cells[n] for n in range(len(tokens))]),
        grid_QGT=grid_QGT,
        paths=paths,
        inputs_N=of_tokens("input"),
        targets_N=of_tokens("target"),
        positive_advantages_N=of_tokens("positive_advantage"),
        negative_advantages_N=of_tokens("negative_advantage"),
        token_weights_N=of_tokens("weight"),
        old_logprobs_N=of_tokens("old_logprob") if any(any(g.old_logprobs or ()) for g in groups) else None,
        reference_logprobs_N=of_tokens("reference_logprob")
        if any(g.reference_logprobs for g in groups)
        else None,
    )


def _add_tree(group: Group, weights: Mapping[int, float], tokens: list[_Token]) -> list[list[int]]:
    """Append the tokens of one question, and each common beginning only once. Returns the numbers of the tokens of each
    completion that has an advantage."""
    children: dict[tuple[int, int], int] = {}
    paths = []
    nothing = ((),) * len(group.completions)
    for completion, advantage, suffix, end, old, reference in zip(
        group.completions,
        group.advantages,
        group.prompt_suffixes or nothing,
        group.trainable_tokens or map(len, group.completions),
        group.old_logprobs or nothing,
        group.reference_logprobs or nothing,
        strict=True,
    ):
        if advantage is None:
            continue
        weight = weights[len(completion)]
        targets = (*suffix, *completion[:end])
        path: list[int] = []
        for index, target in enumerate(targets):
            parent = path[-1] if path else -1
            number = children.setdefault((parent, target), len(tokens))
            if number == len(tokens):
                tokens.append(_Token(targets[index - 1] if index else group.prompt[-1], target))
            path.append(number)
            drawn = index - len(suffix)
            if drawn >= 0 and not (old and old[drawn] == 0):
                token = tokens[number]
                token.weight += weight
                token.positive_advantage += max(advantage, 0.0) * weight
                token.negative_advantage += min(advantage, 0.0) * weight
                if old:
                    token.old_logprob = old[drawn]
                if reference:
                    token.reference_logprob = reference[drawn]
        paths.append(path)
    return paths


def _leaves(paths: Sequence[list[int]]) -> list[list[int]]:
    """The paths that are not the beginning of another path, each once."""
    inner = {number for path in paths for number in path[:-1]}
    return list({path[-1]: path for path in paths if path[-1] not in inner}.values())
