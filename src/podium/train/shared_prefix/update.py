"""One GRPO update: adds up the gradients of the micro-batches, then takes one optimiser step.

`objective` has the loss, and `batch` makes the tensors of a micro-batch. As in the paper, the optimiser is AdamW
without weight decay, with a cosine schedule after a warm-up and clipped gradients. The learning rate depends only on
the iteration, so a resumed run continues exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from podium.train.objective import LOSSES, clipped_surrogate, kl_to_reference, mean_over_tokens
from podium.train.settings import GRPOSettings
from podium.train.shared_prefix.batch import MicroBatch, TrainingRow, micro_batches
from podium.train.shared_prefix.policy_model import PolicyModel


def learning_rate(iteration: int, *, peak: float, iterations: int, warmup: float) -> float:
    """The rate of an iteration counted from 0. It rises linearly to `peak`, then falls along half a cosine to 0.

    Args:
        warmup: the share of the iterations that the rise takes.
    """
    rise = math.ceil(warmup * iterations)
    if iteration < rise:
        return peak * (iteration + 1) / (rise + 1)
    progress = (iteration - rise) / max(iterations - rise, 1)
    return peak * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


def adamw(model: nn.Module) -> torch.optim.AdamW:
    """AdamW over all parameters that are trained, betas 0.9 and 0.999, epsilon 1e-8. The rate is set at each step."""
    return torch.optim.AdamW(
        [parameter for parameter in model.parameters() if parameter.requires_grad],
        lr=0.0,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        fused=True,
    )


def optimizer_step(
    optimizer: torch.optim.Optimizer, model: nn.Module, *, rate: float, max_norm: float = 1.0
) -> float:
    """Clip the norm of all gradients to `max_norm`, take a step at this rate, and clear the gradients.

    Returns:
        The norm before clipping.
    """
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)


def completion_logprobs(
    model: PolicyModel, batch: MicroBatch, temperature: float = 1.0, *, at: Tensor | None = None
) -> Tensor:
    """Log-probabilities of the targets under the model, on the processor. `at` has the numbers of the targets. Default:
    all N.

    The logits are the largest tensor of a micro-batch, so they are computed only for these targets.
    """
    prompt = model.prompt(batch.prompt_1P, torch.tensor([batch.prompt_1P.shape[1]]))
    hidden_ND = model.completions(batch.inputs_N, batch.cells_N, batch.grid_GT, prompt)
    targets_N = batch.targets_N
    if at is not None:
        hidden_ND, targets_N = hidden_ND[at], targets_N[at]
    return model.logprobs(hidden_ND, targets_N, temperature).cpu()


def accumulate(
    model: PolicyModel,
    groups: Sequence[Sequence[TrainingRow]],
    settings: GRPOSettings,
) -> float | None:
    """Add the gradient of the batch to the parameters' gradients. Returns the loss, or None if no group has a gradient.

    Args:
        groups: the batch. Rows without log-probabilities of the reference have no KL term.
        settings: `loss_type`, `max_tokens`, `clip`, `temperature` and `beta`.
    """
    weights, clip = LOSSES[settings.loss_type], settings.clip
    batches = micro_batches(groups, weights, max_tokens=settings.max_tokens)
    if not batches:
        return None
    total = 0.0
    for batch in batches:
        # A token of a prompt suffix may be so unlikely that its ratio overflows, and infinity times 0 is NaN.
        trained = batch.token_weights_N.nonzero().flatten()
        logprobs_N = completion_logprobs(model, batch, settings.temperature, at=trained)
        old_N = None if batch.old_logprobs_N is None else batch.old_logprobs_N[trained]
        # A row may stand for completions of both signs. The clip bounds the ratio from above for a positive advantage
        # and from below for a negative one, so each sign has its own surrogate.
        positive_N, negative_N = batch.positive_advantages_N[trained], batch.negative_advantages_N[trained]
        loss = clipped_surrogate(logprobs_N, positive_N, old_logprobs_N=old_N, clip=clip)
        loss = loss + clipped_surrogate(logprobs_N, negative_N, old_logprobs_N=old_N, clip=clip)
        if batch.reference_logprobs_N is not None:
            kl_N = kl_to_reference(logprobs_N, batch.reference_logprobs_N[trained], old_logprobs_N=old_N)
            loss = loss + settings.beta * (kl_N * batch.token_weights_N[trained]).sum()
        torch.autograd.backward(loss)
        total += float(loss.detach())
    return total


def update(
    model: PolicyModel,
    optimizer: torch.optim.Optimizer,
    groups: Sequence[Sequence[TrainingRow]],
    settings: GRPOSettings,
    *,
    rate: float,
) -> tuple[float, float]:
    """Take one optimiser step on the whole batch. Returns the loss, and the norm of the gradient before clipping.

    If no group has a gradient, no step is taken, since Adam's momentum would move the policy without evidence.
    """
    loss = accumulate(model, groups, settings)
    if loss is None:
        return 0.0, 0.0
    return loss, optimizer_step(optimizer, model, rate=rate, max_norm=settings.max_norm)


class ReferencePolicy:
    """A frozen copy of the policy that training started from. The KL term measures the divergence from it."""

    def __init__(self, model: PolicyModel, temperature: float = 1.0) -> None:
        self._model = model.inference_copy()
        self._temperature = temperature

    def logprobs(self, group: Sequence[TrainingRow]) -> list[tuple[float, ...]]:
        """Log-probabilities of the tokens of each row."""
        whole = [replace(row, advantage=1.0, trainable_tokens=None, old_logprobs=()) for row in group]
        (batch,) = micro_batches([whole], mean_over_tokens, max_tokens=1)
        with torch.no_grad():
            logprobs = completion_logprobs(self._model, batch, self._temperature).tolist()
        return [
            tuple(logprobs[n] for n in path[-len(row.tokens) :])
            for row, path in zip(group, batch.paths, strict=True)
        ]
