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
from podium.train.objective import LOSSES, kl_to_reference, mean_over_tokens
from podium.train.optimizer import Optimizers, step
from podium.train.sampler import Samples


@dataclass(frozen=True, slots=True)
class Update:
    """What one update did."""

    loss: float
    grad_norm: float
    """Before clipping."""
    stepped: bool
    """False: no group had a gradient, and nothing changed."""


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
    beta: float = 0.0,
    questions: int = 1,
) -> float | None:
    """Add the gradient of the batch to the parameters' and return the loss; None when there is none.

    Args:
        loss_type: a name in `LOSSES`.
        beta: weight of the KL divergence from the reference, for groups that have its log-probabilities.
        questions: groups of a micro-batch; it changes memory and time, not the gradient.
    """
    loss_of = LOSSES[loss_type]
    batches = micro_batches(groups, loss_of.token_weights, max_tokens=max_tokens, questions=questions)
    if not batches:
        return None
    total = 0.0
    for batch in batches:
        logprobs_N = completion_logprobs(model, batch, temperature)
        # Tokens of a prompt suffix may be so unlikely that their ratios overflow, and infinity times 0 is no number.
        trained = batch.token_weights_N.nonzero().flatten()
        logprobs_N = logprobs_N[trained]
        old_N = None if batch.old_logprobs_N is None else batch.old_logprobs_N[trained]
        # Completions of either sign share a row, and the clip bounds the ratio of the one above, of the other below.
        gain = loss_of.surrogate(logprobs_N, batch.gains_N[trained], old_logprobs_N=old_N, clip=clip)
        loss = gain + loss_of.surrogate(logprobs_N, batch.losses_N[trained], old_logprobs_N=old_N, clip=clip)
        if batch.reference_logprobs_N is not None:
            kl_N = kl_to_reference(logprobs_N, batch.reference_logprobs_N[trained], old_logprobs_N=old_N)
            loss = loss + beta * (kl_N * batch.token_weights_N[trained]).sum()
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
    beta: float = 0.0,
    max_norm: float = 1.0,
) -> Update:
    """One step of the optimisers on the whole batch.

    When no group has a gradient no step is taken: Adam's momentum would move the policy without evidence.
    """
    loss = accumulate(
        model,
        groups,
        loss_type=loss_type,
        max_tokens=max_tokens,
        clip=clip,
        temperature=temperature,
        beta=beta,
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
    ) -> tuple[tuple[float, ...], ...]:
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
        by_row = {row: tuple(part[len(row[0]) :].tolist()) for row, part in zip(distinct, parts, strict=True)}
        return tuple(by_row[row] for row in rows)


def log_ratios(samples: Samples, reference_logprobs: Sequence[Sequence[float]]) -> list[float]:
    """By how many nats each completion is likelier under the policy that drew it than under the reference."""
    return [fsum(drawn) - fsum(row) for drawn, row in zip(samples.logprobs, reference_logprobs, strict=True)]
