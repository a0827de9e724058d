"""Samples a group of completions for each of several prompts. Each prompt is prefilled once for its whole group.

A token is drawn by inverting the cumulative distribution at a uniform random number. One seeded generator draws these
numbers for all rows in advance, so a row's tokens do not depend on when other rows end. Rows that have ended are
dropped from the batch when that saves enough work. This module handles token ids, never text. Shape suffixes as in
`model`, and: A rows of a question that still run, R query heads that share a key/value head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.model import PolicyModel, PromptKeys
from podium.train.runtime import generator

_COMPACT_BELOW = 0.85
"""Ended rows are dropped when this share of the rows or less would remain. Dropping copies the cache."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The completions of one prompt, one row each."""

    tokens: tuple[tuple[int, ...], ...]
    """A row ends with the end token, unless it reached `max_tokens` first."""
    logprobs: tuple[tuple[float, ...], ...]
    """Log-probability of each token under the distribution from which it was drawn."""
    ended: tuple[bool, ...]
    """False: the row was cut off at `max_tokens`."""


@torch.no_grad()
def sample(
    model: PolicyModel,
    prompts: Sequence[Sequence[int]],
    *,
    prompt_suffixes: Sequence[Sequence[Sequence[int]]],
    max_tokens: int,
    end: int,
    seed: str,
    temperature: float = 1.0,
) -> list[Samples]:
    """Draw completions for each prompt.

    Args:
        prompts: token ids, at least two each.
        prompt_suffixes: for each prompt, one token sequence for each row: what follows the prompt in that row before
            its completion begins. It is often empty.
        end: id of the token that ends a completion.
        seed: seeds the random numbers.

    Returns:
        For each prompt its completions, in the order of its rows.

    Raises:
        ValueError: a prompt has fewer than two tokens, or prompt, suffix and `max_tokens` exceed the model's positions.
    """
    model = model.frozen()
    tokens_QP, lengths_Q = pad_prompts(prompts)
    Q, G = len(prompts), max(map(len, prompt_suffixes))
    rows = [row for rows in prompt_suffixes for row in (*rows, *((),) * (G - len(rows)))]
    suffix_N = torch.tensor([len(row) for row in rows])
    most = int(suffix_N.max()) + max_tokens
    longest = max(
        len(prompt) + max(map(len, own)) + max_tokens
        for prompt, own in zip(prompts, prompt_suffixes, strict=True)
    )
    if longest > model.shape.positions + 1:
        raise ValueError(
            f"a prompt of {longest - max_tokens} tokens and {max_tokens} new ones exceed the model's "
            f"{model.shape.positions} positions"
        )
    uniform_NT = torch.rand(Q * G, max_tokens, generator=generator(seed))
    drawn_NT = torch.full((Q * G, most), end)
    for row, tokens in enumerate(rows):
        drawn_NT[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    logprobs_NT = torch.zeros(Q * G, max_tokens)
    length_N = suffix_N + max_tokens
    # A question with fewer rows than the others is padded with rows that count as ended from the start.
    ended_N = torch.tensor([g >= len(rows) for rows in prompt_suffixes for g in range(G)])

    cache = _Cache(model, model.prompt(tokens_QP, lengths_Q), G, most)
    rows_QA = torch.arange(Q * G).view(Q, G)
    token_N = torch.tensor([prompt[-1] for prompt in prompts]).repeat_interleave(G)
    for step in range(most):
        hidden_ND = model.run(token_N, cache.positions(step), cache)
        rows_N = rows_QA.flatten()
        # Rows that have ended are computed until they are dropped, but their tokens are not kept.
        drawing = ((suffix_N[rows_N] <= step) & ~ended_N[rows_N]).nonzero().flatten()
        if len(drawing):
            live = rows_N[drawing]
            at = step - suffix_N[live]
            logits_NV = model.logits(hidden_ND[drawing]).float() / temperature
            token, logprob = _draw(logits_NV, uniform_NT[live, at])
            drawn_NT[live, step] = token
            logprobs_NT[live, at] = logprob
            stopped = live[(token == end) | (at + 1 == max_tokens)]
            ended_N[stopped] = True
            length_N[stopped] = step + 1

        token_N = drawn_NT[rows_N, step]
        running_QA = ~ended_N[rows_QA]
        counts_Q = running_QA.sum(1)
        most_rows, questions = int(counts_Q.max()), int((counts_Q > 0).sum())
        if most_rows == 0:
            break
        if most_rows * questions <= _COMPACT_BELOW * rows_QA.numel():
            keep_Q = counts_Q.nonzero().flatten()
            order_QA = running_QA[keep_Q].int().argsort(dim=1, descending=True, stable=True)[:, :most_rows]
            token_N = token_N.view_as(rows_QA)[keep_Q].gather(1, order_QA).flatten()
            rows_QA = rows_QA[keep_Q].gather(1, order_QA)
            cache.keep(keep_Q, order_QA, step + 1)

    drawn = [
        _row(drawn_NT[row, int(suffix_N[row]) : int(length_N[row])], logprobs_NT[row], end)
        for row in range(Q * G)
    ]
    return [_samples(drawn[q * G : q * G + len(rows)]) for q, rows in enumerate(prompt_suffixes)]


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


def _draw(logits_NV: Tensor, uniform_N: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token for each row. Returns the tokens and their log-probabilities."""
    logprobs_NV = logits_NV.log_softmax(-1)
    cumulative_NV = logprobs_NV.exp().cumsum(-1)
    # Rounding may leave the last sum below 1. Scaled by that sum, no number lies beyond the last token.
    target_N1 = (uniform_N * cumulative_NV[:, -1]).unsqueeze(1)
    token_N1 = torch.searchsorted(cumulative_NV, target_N1, right=True).clamp_(max=logits_NV.shape[1] - 1)
    return token_N1.squeeze(1), logprobs_NV.gather(1, token_N1).squeeze(1)


_Row = tuple[tuple[int, ...], tuple[float, ...], bool]
"""Tokens, their log-probabilities, and whether the last one is the end token."""


def _row(tokens_T: Tensor, logprobs_T: Tensor, end: int) -> _Row:
    tokens: list[int] = tokens_T.tolist()
    logprobs: list[float] = logprobs_T[: len(tokens)].tolist()
    return tuple(tokens), tuple(logprobs), tokens[-1] == end


def _samples(rows: Sequence[_Row]) -> Samples:
    return Samples(
        tokens=tuple(tokens for tokens, _, _ in rows),
        logprobs=tuple(logprobs for _, logprobs, _ in rows),
        ended=tuple(ended for _, _, ended in rows),
    )


class _Cache:
    """The KV cache of prompts and completions; called as the `Attend` of a decoding step."""

    def __init__(self, model: PolicyModel, prompt: PromptKeys, group: int, max_tokens: int) -> None:
        shape = model.shape
        self.shape, self.rows, self.length = shape, group, 0
        self.lengths_Q = prompt.lengths_Q
        self.prompt_keys = [key.transpose(2, 3).contiguous() for key in prompt.keys]
        self.prompt_values = [value.contiguous() for value in prompt.values]
        self.bias_Q1P = prompt.bias(prompt.keys[0].dtype)
        size = (len(self.lengths_Q), shape.kv_heads, group, max_tokens, shape.head_size)
        self.keys = [key.new_empty(size) for key in prompt.keys]
        self.values = [value.new_empty(size) for value in prompt.values]

    def positions(self, step: int) -> Tensor:
        """Begin a step. Returns the positions of its tokens, one for each row."""
        self.length = step + 1
        return (self.lengths_Q + step).repeat_interleave(self.rows)

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor) -> Tensor:
        Q, A = len(self.lengths_Q), self.rows
        K, R, D = self.shape.kv_heads, self.shape.queries_per_kv, self.shape.head_size
        keys, values = self.keys[layer], self.values[layer]
        at = self.length - 1
        keys[:, :, :, at] = key_NKD.reshape(Q, A, K, D).transpose(1, 2)
        values[:, :, :, at] = value_NKD.reshape(Q, A, K, D).transpose(1, 2)
        own_keys = keys.view(Q * K * A, -1, D)[:, : self.length]
        own_values = values.view(Q * K * A, -1, D)[:, : self.length]

        query = query_NHD.reshape(Q, A, K, R, D).transpose(1, 2).reshape(Q * K, A * R, D) * D**-0.5
        to_prompt = torch.bmm(query, self.prompt_keys[layer].view(Q * K, D, -1))
        if self.bias_Q1P is not None:
            to_prompt.view(Q, K * A * R, -1).add_(self.bias_Q1P)
        to_own = torch.bmm(query.view(Q * K * A, R, D), own_keys.transpose(1, 2))
        P = to_prompt.shape[-1]
        weights = torch.cat((to_prompt, to_own.view(Q * K, A * R, -1)), dim=-1).softmax(-1)
        mixed = torch.bmm(weights[..., :P], self.prompt_values[layer].view(Q * K, P, D))
        mixed.view(-1, R, D).add_(torch.bmm(weights[..., P:].reshape(Q * K * A, R, -1), own_values))
        return mixed.view(Q, K, A, R, D).transpose(1, 2).reshape(Q * A, K * R * D)

    def keep(self, questions_Q: Tensor, rows_QA: Tensor, length: int) -> None:
        """Keep only these questions, and of each only these rows, whose first `length` positions are filled."""
        self.rows = rows_QA.shape[1]
        for cache in (self.keys, self.values):
            for layer, old in enumerate(cache):
                new = old.new_empty(len(questions_Q), old.shape[1], self.rows, *old.shape[3:])
                for to, question in enumerate(questions_Q.tolist()):
                    new[to, :, :, :length] = old[question, :, rows_QA[to], :length]
                cache[layer] = new
        if len(questions_Q) < len(self.lengths_Q):
            self.lengths_Q = self.lengths_Q[questions_Q]
            self.prompt_keys = [key[questions_Q] for key in self.prompt_keys]
            self.prompt_values = [value[questions_Q] for value in self.prompt_values]
            self.bias_Q1P = None if self.bias_Q1P is None else self.bias_Q1P[questions_Q]
