"""The GRPO loss (the paper, equation 1, without the KL term, as the paper trains).

A loss is a weighted sum over tokens, and the weights depend on the lengths of the whole batch alone. So it
can be taken a few groups at a time and the gradients added up: the result is that of the batch. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

LossType = Literal["bnpo", "grpo", "dr_grpo"]
"""How tokens are averaged, in TRL's words: "bnpo" over all tokens of the batch (the paper's code), "grpo"
over
each completion and then over completions, "dr_grpo" over completions times the limit of tokens."""


def token_weights(lengths: Sequence[int], loss_type: LossType, *, max_tokens: int) -> tuple[float, ...]:
    """The weight of each token of each completion of the batch.

    Args:
        lengths: tokens of every completion that counts, those of groups with equal rewards included.
        max_tokens: the limit of tokens, for "dr_grpo".
    """
    if loss_type == "bnpo":
        return (1.0 / max(sum(lengths), 1),) * len(lengths)
    if loss_type == "grpo":
        return tuple(1.0 / (max(length, 1) * len(lengths)) for length in lengths)
    return (1.0 / (max_tokens * max(len(lengths), 1)),) * len(lengths)


def grpo_loss(
    logprobs_N: Tensor,
    weighted_advantages_N: Tensor,
    *,
    old_logprobs_N: Tensor | None = None,
    clip: float = 0.2,
) -> Tensor:
    """The clipped surrogate, summed over tokens.

    Args:
        logprobs_N: of the sampled tokens under the policy that is trained.
        weighted_advantages_N: the advantage of each token's completion, times the token's weight (`token_weights`).
        old_logprobs_N: under the policy that sampled them; None: that is the policy before this one step, so
            the ratio is 1 and never clipped, and its gradient is that of the log-probability.
        clip: how far the ratio may leave 1 before it stops to earn.
    """
    old_logprobs_N = logprobs_N.detach() if old_logprobs_N is None else old_logprobs_N
    ratio_N = torch.exp(logprobs_N - old_logprobs_N)
    clipped_N = ratio_N.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio_N * weighted_advantages_N, clipped_N * weighted_advantages_N).sum()
