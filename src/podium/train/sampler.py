"""Draws a group of completions for each of several prompts, reading each prompt once.

Tokens are drawn by inverting the cumulative distribution at one uniform number a token, made in advance
from a named generator: a row's draws do not depend on which other rows have ended. Rows that have ended are
dropped from the batch when that saves enough. Nothing here knows of text. Suffixes as in `model`; A rows
still running of a question, R query heads of a key/value head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.model import PolicyModel, PromptKeys
from podium.train.randomness import generator

_COMPACT_BELOW = 0.85
"""Rows are dropped when this share or less would remain: dropping copies the cache."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The completions of one prompt."""

    tokens: tuple[tuple[int, ...], ...]
    """Each ends with the end token, unless it reached the limit of tokens first."""
    logprobs: tuple[tuple[float, ...], ...]
    """Of each token, under the distribution that it was drawn from."""
    ended: tuple[bool, ...]
    """False: cut off at the limit of tokens."""


@torch.no_grad()
def sample(
    model: PolicyModel,
    prompts: Sequence[Sequence[int]],
    *,
    group: int,
    max_tokens: int,
    end: int,
    seed: str,
    temperature: float = 1.0,
) -> list[Samples]:
    """Draw `group` completions for each prompt.

    Args:
        prompts: token ids, at least two each.
        end: id of the token that ends a completion.
        seed: names the randomness.

    Returns:
        For each prompt its completions, in order.

    Raises:
        ValueError: a prompt has fewer than two tokens, or with `max_tokens` more than the model's positions.
    """
    model = model.frozen()
    tokens_QP, lengths_Q = pad_prompts(prompts)
    if int(lengths_Q.max()) + max_tokens > model.shape.positions:
        raise ValueError(
            f"a prompt of {int(lengths_Q.max()) + 1} tokens and {max_tokens} new ones exceed the model's "
            f"{model.shape.positions} positions"
        )
    Q = len(prompts)
    uniform_NT = torch.rand(Q * group, max_tokens, generator=generator(seed))
    drawn_NT = torch.full((Q * group, max_tokens), end)
    logprobs_NT = torch.zeros(Q * group, max_tokens)
    length_N = torch.full((Q * group,), max_tokens)
    ended_N = torch.zeros(Q * group, dtype=torch.bool)

    cache = _Cache(model, model.prompt(tokens_QP, lengths_Q), group, max_tokens)
    rows_QA = torch.arange(Q * group).view(Q, group)
    token_QA = torch.tensor([prompt[-1] for prompt in prompts]).unsqueeze(1).expand(Q, group)
    for step in range(max_tokens):
        hidden_N = model.run(token_QA.flatten(), cache.positions(step), cache)
        rows = rows_QA.flatten()
        token, logprob = _draw(model.logits(hidden_N).float() / temperature, uniform_NT[rows, step])
        # Rows that ended earlier ride along until they are dropped; what they draw is not kept.
        running = ~ended_N[rows]
        live = rows[running]
        drawn_NT[live, step] = token[running]
        logprobs_NT[live, step] = logprob[running]
        stopped = live[token[running] == end]
        ended_N[stopped] = True
        length_N[stopped] = step + 1

        running_QA = ~ended_N[rows_QA]
        counts_Q = running_QA.sum(1)
        most, questions = int(counts_Q.max()), int((counts_Q > 0).sum())
        if most == 0:
            break
        token_QA = token.view_as(rows_QA)
        if most * questions <= _COMPACT_BELOW * rows_QA.numel():
            keep_Q = counts_Q.nonzero().flatten()
            order_QA = running_QA[keep_Q].int().argsort(dim=1, descending=True, stable=True)[:, :most]
            rows_QA = rows_QA[keep_Q].gather(1, order_QA)
            token_QA = token_QA[keep_Q].gather(1, order_QA)
            cache.keep(keep_Q, order_QA, step + 1)

    return [
        _samples(drawn_NT[at], logprobs_NT[at], length_N[at], ended_N[at])
        for at in (slice(q * group, (q + 1) * group) for q in range(Q))
    ]


def pad_prompts(prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """All but the last token of each prompt, padded on the right to [Q, P], and the true lengths [Q].

    The last token of a prompt is the first input of its completions: it predicts their first token.
    """
    if min(map(len, prompts)) < 2:
        raise ValueError("a prompt needs at least two tokens")
    lengths = [len(prompt) - 1 for prompt in prompts]
    tokens_QP = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    for row, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        tokens_QP[row, :length] = torch.tensor(prompt[:-1])
    return tokens_QP, torch.tensor(lengths)


def _draw(logits_NV: Tensor, uniform_N: Tensor) -> tuple[Tensor, Tensor]:
    """One token for each row, and its log-probability."""
    logprobs_NV = logits_NV.log_softmax(-1)
    cumulative_NV = logprobs_NV.exp().cumsum(-1)
    # Scaled by the last sum, since rounding may leave it below 1 and a draw above it would fall off the end.
    target_N1 = (uniform_N * cumulative_NV[:, -1]).unsqueeze(1)
    token_N1 = torch.searchsorted(cumulative_NV, target_N1, right=True).clamp_(max=logits_NV.shape[1] - 1)
    return token_N1.squeeze(1), logprobs_NV.gather(1, token_N1).squeeze(1)


def _samples(tokens_GT: Tensor, logprobs_GT: Tensor, length_G: Tensor, ended_G: Tensor) -> Samples:
    lengths: list[int] = length_G.tolist()
    return Samples(
        tokens=tuple(tuple(row[:n]) for row, n in zip(tokens_GT.tolist(), lengths, strict=True)),
        logprobs=tuple(tuple(row[:n]) for row, n in zip(logprobs_GT.tolist(), lengths, strict=True)),
        ended=tuple(ended_G.tolist()),
    )


class _Cache:
    """Keys and values of the completions so far; the `Attend` of one decoding step."""

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
        """Positions of the tokens of this step, one for each row; begins the step."""
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
        """Go on with these questions and these rows of each, whose first `length` positions are filled."""
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
