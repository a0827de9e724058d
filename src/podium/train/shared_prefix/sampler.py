"""Samples a group of completions for each of several prompts. The common beginning of completions is computed once.

Each prompt is prefilled once for its whole group. Rows of a question that have drawn the same tokens so far are one
branch: the model computes the next distribution once for a branch, and each of its rows draws from it. A branch that
draws different tokens splits. A token is drawn by inverting the cumulative distribution at a uniform random number. One
seeded generator draws these numbers for all rows in advance, so a row's tokens do not depend on other rows. This module
handles token ids, never text. Shape suffixes as in `policy_model`, and: B branches, A branches of a question, R query
heads that share a key/value head.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from podium.conductor.loaded_model import Guide
from podium.train.rollouts import OnEnd, RolloutSample, RoundSampling
from podium.train.runtime import named_generator
from podium.train.shape import ModelShape
from podium.train.shared_prefix.policy_model import PolicyModel, PromptKeys


@dataclass(slots=True, eq=False)
class SampledRow:
    """A completion of one prompt of a group, complete when `sample` yields it."""

    question: int
    """The number of the group."""
    number: int
    """The number of the prompt in its group."""
    suffix: Sequence[int]
    """The end of the prompt, which the other prompts of the group do not share."""
    uniform: Sequence[float]
    """One random number for each token that the row may draw."""
    branch: int
    tokens: list[int] = field(default_factory=list)
    """The tokens. The last one is an end token, unless the row reached `max_tokens` first."""
    logprobs: list[float] = field(default_factory=list)
    """Log-probability of each token under the distribution from which it was drawn."""


@dataclass(frozen=True, eq=False)
class GroupSampler:
    """A `Sampler` for one batch."""

    model: PolicyModel
    eos_token_ids: Collection[int]
    """The tokens that end a completion."""
    max_tokens: int
    temperature: float
    seed: str
    """The name of the random generator."""
    guide: Guide | None
    """Names the tokens that must not be drawn. If it is None, every token may be drawn."""

    def draw(self, samples: Sequence[RolloutSample], on_end: OnEnd, sampling: RoundSampling) -> None:
        """Draw all completions of the round, question by question, and call `on_end` when a completion ends."""
        groups = grouped_samples(samples)
        for row in sample(
            self.model,
            [[one.prompt for one in group] for group in groups],
            max_tokens=self.max_tokens,
            eos_token_ids=self.eos_token_ids,
            seed=f"{self.seed}/{sampling.round}" if sampling.round else self.seed,
            temperature=self.temperature,
            greedy=sampling.greedy,
            guide=self.guide,
        ):
            on_end(groups[row.question][row.number], row.tokens, row.logprobs)


def grouped_samples(samples: Sequence[RolloutSample]) -> list[list[RolloutSample]]:
    """The samples that have a prompt, in order, grouped by question and round."""
    groups: dict[object, list[RolloutSample]] = {}
    for one in samples:
        if one.prompt:
            groups.setdefault(one.group, []).append(one)
    return list(groups.values())


@torch.no_grad()
def sample(
    model: PolicyModel,
    groups: Sequence[Sequence[Sequence[int]]],
    *,
    max_tokens: int,
    eos_token_ids: Collection[int],
    seed: str,
    temperature: float = 1.0,
    greedy: bool = False,
    guide: Guide | None = None,
) -> Iterator[SampledRow]:
    """Draw a completion for each prompt, and yield it as soon as it ends.

    Args:
        groups: the prompts of each group, as token ids. Their common beginning has at least two tokens, and is read
            once.
        eos_token_ids: ids of the tokens that end a completion.
        seed: seeds the random numbers.
        greedy: whether the most likely token is taken instead of a random one.
        guide: names the tokens that must not be drawn. If it is None, every token may be drawn.

    Raises:
        ValueError: the common beginning of a group is shorter.
    """
    if not groups:
        return
    model = model.inference_copy()
    prompts = [common_prefix(group) for group in groups]
    tokens_QP, lengths_Q = pad_prompts(prompts)
    uniform = torch.rand(
        len(groups), max(map(len, groups)), max_tokens, generator=named_generator(seed)
    ).tolist()
    live = [
        SampledRow(q, g, prompt[len(prompts[q]) :], uniform[q][g], branch=q)
        for q, group in enumerate(groups)
        for g, prompt in enumerate(group)
    ]
    cache = _Cache(
        model.shape,
        model.prompt(tokens_QP, lengths_Q),
        branches=len(live),
        max_tokens=max(len(row.suffix) for row in live) + max_tokens,
    )
    inputs = [prompt[-1] for prompt in prompts]
    while live:
        hidden_BD = model.run(torch.tensor(inputs), cache.next_positions(), cache)
        past_prompt = [row for row in live if len(row.suffix) < cache.length]
        if past_prompt:
            _draw(model, hidden_BD, past_prompt, temperature=temperature, greedy=greedy, guide=guide)
        going = []
        for row in live:
            if row.tokens and (row.tokens[-1] in eos_token_ids or len(row.tokens) == max_tokens):
                yield row
            else:
                going.append(row)
        live = going
        inputs = _split_branches(cache, live)


def _split_branches(cache: _Cache, rows: Sequence[SampledRow]) -> list[int]:
    """Give the rows of each branch that have different next tokens branches of their own. Returns the next token of
    each branch."""
    step = cache.length - 1
    children: dict[tuple[int, int], list[SampledRow]] = {}
    for row in rows:
        token = row.suffix[step] if step < len(row.suffix) else row.tokens[-1]
        children.setdefault((row.branch, token), []).append(row)
    slots = cache.follow([parent for parent, _ in children])
    inputs = [0] * len(slots)
    for slot, ((_, token), of_child) in zip(slots, children.items(), strict=True):
        inputs[slot] = token
        for row in of_child:
            row.branch = slot
    return inputs


def _draw(
    model: PolicyModel,
    hidden_BD: Tensor,
    rows: Sequence[SampledRow],
    *,
    temperature: float,
    greedy: bool,
    guide: Guide | None,
) -> None:
    """Draw the next token of each row from the distribution of its branch."""
    branches, branch_N = torch.tensor([row.branch for row in rows]).unique(  # type: ignore[no-untyped-call]
        return_inverse=True
    )
    branch_N = branch_N.to(model.device)
    logits_BV = model.logits(hidden_BD[branches]).float() / temperature
    if guide is not None:
        wrong_BV = np.zeros(logits_BV.shape, bool)
        # All rows of a branch have the same tokens.
        for b, tokens in {b: row.tokens for b, row in zip(branch_N.tolist(), rows, strict=True)}.items():
            if (wrong := guide.forbidden(tokens)) is not None:
                wrong_BV[b, wrong] = True
        logits_BV.masked_fill_(torch.from_numpy(wrong_BV).to(model.device), -torch.inf)
    probs_BV = torch.softmax(logits_BV, -1)
    cumulative_NV = probs_BV.cumsum(-1)[branch_N]
    uniform_N = torch.tensor([row.uniform[len(row.tokens)] for row in rows], device=model.device)
    # Rounding may leave the last sum below 1. Numbers scaled by that sum do not lie beyond the last token.
    target_N1 = (uniform_N * cumulative_NV[:, -1]).unsqueeze(1)
    token_N1 = torch.searchsorted(cumulative_NV, target_N1, right=True).clamp_(max=probs_BV.shape[1] - 1)
    token_N = probs_BV.argmax(-1)[branch_N] if greedy else token_N1.squeeze(1)
    logprob_N = probs_BV[branch_N, token_N].log()
    for row, token, logprob in zip(rows, token_N.tolist(), logprob_N.tolist(), strict=True):
        row.tokens.append(token)
        row.logprobs.append(logprob)


def pad_prompts(prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """The prompts without their last tokens, padded on the right to [Q, P], and their lengths [Q] without padding.

    The last token of a prompt is left out because it is the first input of the completions and predicts their first
    token.
    """
    if min(map(len, prompts)) < 2:
        raise ValueError("a prompt needs at least two tokens")
    lengths = [len(prompt) - 1 for prompt in prompts]
    tokens_QP = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    for row, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        tokens_QP[row, :length] = torch.tensor(prompt[:-1])
    return tokens_QP, torch.tensor(lengths)


def common_prefix(prompts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The tokens with which all prompts begin."""
    # All prompts lie between the first and the last in sorted order, so they begin with what these two share.
    whole = list(map(tuple, prompts))
    first, last = min(whole), max(whole)
    shared = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(shared, len(first))]


class _Cache:
    """The KV cache of prompts and branches. It is called as the `Attend` of a decoding step.

    It begins with one branch for each prompt. The number of a branch is its slot in the cache.

    Args:
        branches: the most branches at a time.
        max_tokens: the most tokens of a branch.
    """

    def __init__(self, shape: ModelShape, prompt: PromptKeys, *, branches: int, max_tokens: int) -> None:
        self.shape, self.length = shape, 0
        self.prompt_lengths_Q = prompt.lengths_Q
        self.prompt_keys = [key.transpose(2, 3).flatten(0, 1).contiguous() for key in prompt.keys]
        self.prompt_values = [value.flatten(0, 1).contiguous() for value in prompt.values]
        self.prompt_bias_Q1P = prompt.bias(prompt.keys[0].dtype)
        size = (max(branches, len(prompt.lengths_Q)), shape.kv_heads, max_tokens, shape.head_size)
        self.keys = [key.new_empty(size) for key in prompt.keys]
        self.values = [value.new_empty(size) for value in prompt.values]
        self.questions = list(range(len(prompt.lengths_Q)))
        """The question of each branch."""

    def next_positions(self) -> Tensor:
        """Begin a step of one token for each branch. Returns the positions of these tokens."""
        self.length += 1
        question_B = torch.tensor(self.questions)
        # The branches of a question are side by side when they attend to their prompt.
        counts = [0] * len(self.prompt_lengths_Q)
        place_B = []
        for question in self.questions:
            place_B.append(counts[question])
            counts[question] += 1
        self.max_branches = max(counts)
        K = self.shape.kv_heads
        row_BK = question_B.unsqueeze(1) * K + torch.arange(K)
        numbers = (row_BK * self.max_branches + torch.tensor(place_B).unsqueeze(1)).flatten()
        self.prompt_index_N = numbers.to(self.keys[0].device)
        """[B*K]: the index of each branch's heads in the flattened [Q, K, A], in which they attend to the prompts."""
        return self.prompt_lengths_Q[question_B] + (self.length - 1)

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor) -> Tensor:
        B, K, R, D = len(query_NHD), self.shape.kv_heads, self.shape.queries_per_kv, self.shape.head_size
        keys, values = self.keys[layer][:B], self.values[layer][:B]
        keys[:, :, self.length - 1] = key_NKD
        values[:, :, self.length - 1] = value_NKD
        own_keys = keys.view(B * K, -1, D)[:, : self.length]
        own_values = values.view(B * K, -1, D)[:, : self.length]

        query = query_NHD.reshape(B * K, R, D) * D**-0.5
        to_prompt = torch.bmm(self._to_prompt_rows(query), self.prompt_keys[layer])
        P = to_prompt.shape[-1]
        if self.prompt_bias_Q1P is not None:
            to_prompt.view(len(self.prompt_lengths_Q), -1, P).add_(self.prompt_bias_Q1P)
        to_own = torch.bmm(query, own_keys.transpose(1, 2))
        weights = torch.cat((self._from_prompt_rows(to_prompt), to_own), dim=-1).softmax(-1)
        mixed = self._from_prompt_rows(
            torch.bmm(self._to_prompt_rows(weights[..., :P]), self.prompt_values[layer])
        )
        return mixed.baddbmm_(weights[..., P:], own_values).view(B, K * R * D)

    def follow(self, parents: Sequence[int]) -> list[int]:
        """Replace the branches by their children, given the parent of each child. Returns the slot of each child.

        The first child of a branch keeps the slot if it can. The cache is copied for the other children.
        """
        stays = {
            parent: child for child, parent in reversed(list(enumerate(parents))) if parent < len(parents)
        }
        free = iter(slot for slot in range(len(parents)) if slot not in stays)
        slots = [parent if stays.get(parent) == child else next(free) for child, parent in enumerate(parents)]
        moved = [(parent, slot) for parent, slot in zip(parents, slots, strict=True) if parent != slot]
        if moved:
            source, target = torch.tensor(moved).unbind(1)
            for cache in (*self.keys, *self.values):
                cache[target, :, : self.length] = cache[source, :, : self.length]
        before = self.questions
        self.questions = [0] * len(slots)
        for slot, parent in zip(slots, parents, strict=True):
            self.questions[slot] = before[parent]
        return slots

    def _to_prompt_rows(self, x_NRD: Tensor) -> Tensor:
        """[B*K, R, D] -> [Q*K, A*R, D], with zeros where a question has fewer branches than another."""
        _, R, D = x_NRD.shape
        rows = x_NRD.new_zeros(len(self.prompt_keys[0]) * self.max_branches, R * D)
        return rows.index_copy_(0, self.prompt_index_N, x_NRD.reshape(-1, R * D)).view(
            -1, self.max_branches * R, D
        )

    def _from_prompt_rows(self, x: Tensor) -> Tensor:
        """The inverse of `_to_prompt_rows`."""
        R, D = self.shape.queries_per_kv, x.shape[-1]
        return x.view(-1, R * D).index_select(0, self.prompt_index_N).view(-1, R, D)
