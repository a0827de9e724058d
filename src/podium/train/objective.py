"""What GRPO maximises: the advantage of each rollout, the loss of each token, the weight of the KL term.

Settings choose an advantage by its name in `ADVANTAGES` and a loss by its name in `LOSSES`. To add one, write the
function in a file of its own and name it in the table. Everything here is pure, and nothing loads torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

PAPER_STD_EPS = 1e-4
"""What the paper's code adds to the standard deviation."""


def advantages(rewards: Sequence[float | None], std_eps: float = PAPER_STD_EPS) -> tuple[float | None, ...]:
    """The advantage of each rollout of one group: (reward - mean) / (standard deviation + std_eps).

    The standard deviation divides by n - 1, as in the paper's trainer (equation 2). A reward of None belongs to a
    rollout whose workers failed: it has no advantage and does not count in the others'. In a group of equal rewards
    every advantage is exactly 0.

    Args:
        std_eps: a value far above the paper's keeps small differences small. With the paper's, a group whose answers
            are all right and whose costs differ by a cent has advantages as large as a group in which some are wrong.
    """
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or min(known) == max(known):
        return tuple(None if reward is None else 0.0 for reward in rewards)
    mean, scale = fmean(known), stdev(known) + std_eps
    return tuple(None if reward is None else (reward - mean) / scale for reward in rewards)


LossType = Literal["bnpo", "grpo", "dr_grpo"]
"""How tokens are averaged, in TRL's words: "bnpo" over all tokens of the batch (the paper's code), "grpo" over each
completion and then over completions, "dr_grpo" over completions times the limit of tokens."""


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
    """The clipped surrogate (the paper, equation 1, without its KL term), summed over tokens.

    Args:
        logprobs_N: of the sampled tokens under the policy that is trained.
        weighted_advantages_N: the advantage of each token's completion, times the token's weight (`token_weights`).
        old_logprobs_N: under the policy that sampled them. None: that is the policy before this one step, so the
            ratio is 1 and never clipped, and its gradient is that of the log-probability.
        clip: how far the ratio may leave 1 before a further step in that direction gains nothing.
    """
    old_logprobs_N = logprobs_N.detach() if old_logprobs_N is None else old_logprobs_N
    ratio_N = (logprobs_N - old_logprobs_N).exp()
    clipped_N = ratio_N.clamp(1 - clip, 1 + clip)
    return -(ratio_N * weighted_advantages_N).minimum(clipped_N * weighted_advantages_N).sum()


def kl_weight(iteration: int, *, first: float, last: float | None, iterations: int) -> float:
    """The weight of an iteration counted from 0: from `first` to `last` in equal ratios; to 0 in equal steps."""
    if last is None or iterations < 2:
        return first
    progress = iteration / (iterations - 1)
    if min(first, last) == 0:
        return first + (last - first) * progress
    return float(first * (last / first) ** progress)
