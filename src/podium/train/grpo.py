"""One GRPO update: groups in, gradients added up over micro-batches, one step of the optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from podium.train.batch import Group, MicroBatch, micro_batches
from podium.train.loss import LossType, grpo_loss
from podium.train.model import PolicyModel
from podium.train.optimizer import Optimizers, step


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
    loss_type: LossType,
    max_tokens: int,
    clip: float = 0.2,
    temperature: float = 1.0,
    questions: int = 1,
) -> float | None:
    """Add the gradient of the batch to the parameters' and return the loss; None when every group is dead.

    Args:
        questions: groups of a micro-batch; it changes memory and time, not the gradient.
    """
    batches = micro_batches(groups, loss_type, max_tokens=max_tokens, questions=questions)
    if not batches:
        return None
    total = 0.0
    for batch in batches:
        logprobs_N = completion_logprobs(model, batch, temperature)
        loss = grpo_loss(logprobs_N, batch.weighted_advantages_N, clip=clip)
        torch.autograd.backward(loss)
        total += float(loss.detach())
    return total


def update(
    model: PolicyModel,
    optimizers: Optimizers,
    groups: Sequence[Group],
    *,
    rate: float,
    loss_type: LossType = "bnpo",
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
