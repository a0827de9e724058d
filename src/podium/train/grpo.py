"""One GRPO update: groups in, gradients added up over micro-batches, one step of the optimiser. And the reference.

The loss itself is `objective`'s, the tensors of a micro-batch are `batch`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import torch
from torch import Tensor

from podium.train.batch import Group, MicroBatch, micro_batches
from podium.train.model import PolicyModel
from podium.train.objective import LOSSES, mean_over_tokens
from podium.train.optimizer import Optimizers, step
from podium.train.sampler import Samples


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did."""

    loss: float
    grad_norm: float
    """Before clipping."""
    stepped: bool
    """False: every group was dead, and nothing changed."""


def completion_logprobs(model: PolicyModel, batch: MicroBatch, temperature: float = 1.0) -> Tensor:
    """Log-probabilities [N] of the targets under the model."""
    prompt = model.prompt(batch.prompt_QP, batch.prompt_lengths_Q)
    hidden_ND = model.completions(batch.inputs_N, batch.places_N, batch.size_QGT, prompt)
    return model.logprobs(hidden_ND, batch.targets_N, temperature)


def accumulate(
    model: PolicyModel,
    groups: Sequence[Group],
    *,
    loss_type: str,
    max_tokens: int,
    clip: float = 0.2,
    temperature: float = 1.0,
    questions: int = 1,
) -> float | None:
    """Add the gradient of the batch to the parameters' and return the loss; None when every group is dead.

    Args:
        loss_type: a name in `LOSSES`.
        questions: groups of a micro-batch; it changes memory and time, not the gradient.
    """
    loss_of = LOSSES[loss_type]
    batches = micro_batches(groups, loss_of.token_weights, max_tokens=max_tokens, questions=questions)
    if not batches:
        return None
    total = 0.0
    for batch in batches:
        logprobs_N = completion_logprobs(model, batch, temperature)
        loss = loss_of.surrogate(logprobs_N, batch.weighted_advantages_N, clip=clip)
        torch.autograd.backward(loss)
        total += float(loss.detach())
    return total


def update(
    model: PolicyModel,
    optimizers: Optimizers,
    groups: Sequence[Group],
    *,
    rate: float,
    loss_type: str = "bnpo",
    max_tokens: int,
    clip: float = 0.2,
    temperature: float = 1.0,
    max_norm: float = 1.0,
) -> Update:
    """One step of the optimisers on the whole batch.

    When every group is dead no step is taken: Adam's momentum would move the policy without evidence.
    """
    loss = accumulate(
        model, groups, loss_type=loss_type, max_tokens=max_tokens, clip=clip, temperature=temperature
    )
    if loss is None:
        return Update(loss=0.0, grad_norm=0.0, stepped=False)
    return Update(
        loss=loss,
        grad_norm=step(optimizers, model, rates=[rate] * len(optimizers), max_norm=max_norm),
        stepped=True,
    )


class Reference:
    """The frozen policy that training started from: how far has the trained one moved away from it?

    A completion's log-ratio is log p(completion) under the policy minus that under the reference. Its mean over the
    policy's own completions is the KL divergence.
    """

    def __init__(self, model: PolicyModel, temperature: float = 1.0) -> None:
        self._model = model.frozen()
        self._temperature = temperature

    def logprobs(
        self,
        prompt: Sequence[int],
        prompt_suffixes: Sequence[tuple[int, ...]],
        completions: Sequence[tuple[int, ...]],
    ) -> list[list[float]]:
        """Of each token of completions, each of which follows the prompt and its own suffix."""
        rows = list(zip(prompt_suffixes, completions, strict=True))
        distinct = list(dict.fromkeys(rows))
        group = Group(
            tuple(prompt),
            completions=tuple(completion for _, completion in distinct),
            advantages=(1.0,) * len(distinct),
            prompt_suffixes=tuple(suffix for suffix, _ in distinct),
        )
        (batch,) = micro_batches([group], mean_over_tokens, max_tokens=1)
        with torch.no_grad():
            logprobs_N = completion_logprobs(self._model, batch, self._temperature)
        parts = torch.split(logprobs_N, [len(suffix) + len(completion) for suffix, completion in distinct])
        by_row = {row: part[len(row[0]) :].tolist() for row, part in zip(distinct, parts, strict=True)}
        return [by_row[row] for row in rows]

    def log_ratios(
        self, prompt: Sequence[int], prompt_suffixes: Sequence[tuple[int, ...]], samples: Samples
    ) -> list[float]:
        """By how many nats each completion is likelier under the policy that drew it than under the reference."""
        reference = self.logprobs(prompt, prompt_suffixes, samples.tokens)
        return [fsum(drawn) - fsum(row) for drawn, row in zip(samples.logprobs, reference, strict=True)]
