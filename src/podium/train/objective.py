"""What GRPO maximises: the advantage of each rollout, the loss of each token, the KL term.

Settings choose an advantage by its name in `ADVANTAGES` and a loss by its name in `LOSSES`. All functions are pure, and
nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal

from podium.rollout.reward import WRONG_ANSWER_REWARD

if TYPE_CHECKING:
    from torch import Tensor

PAPER_STD_EPS = 1e-4
"""What the paper's code adds to the standard deviation."""


Rewards = Sequence[float | None]
"""The rewards of one group. A rollout whose workers failed has None: it gets no advantage, and changes no other."""

Advantages = tuple[float | None, ...]

ScaleRewards = Literal["group", "batch", "none"]
"""Advantages are divided by the standard deviation of the group's rewards, of the batch's rewards, or by nothing."""


def grpo_advantages(
    groups: Sequence[Rewards],
    *,
    scale_rewards: ScaleRewards = "group",
    std_eps: float = PAPER_STD_EPS,
) -> list[Advantages]:
    """The advantages of each group: (reward - mean of the group) / (standard deviation + std_eps) (the paper, equation
    2).

    The standard deviation divides by n - 1, as in the paper's trainer. In a group of equal rewards every advantage is
    exactly 0.

    Args:
        scale_rewards: the rewards by whose standard deviation the advantages are divided.
        std_eps: with the paper's value, a group of right answers whose costs differ by a cent gets advantages as large
            as a group in which some answers are wrong. A much larger value keeps those of the first group small.
    """
    _, batch_deviation = _mean_and_deviation([reward for rewards in groups for reward in rewards])
    advantages = []
    for rewards in groups:
        mean, deviation = _mean_and_deviation(rewards)
        scale = {"group": deviation + std_eps, "batch": batch_deviation + std_eps, "none": 1.0}[scale_rewards]
        advantages.append(tuple(None if reward is None else (reward - mean) / scale for reward in rewards))
    return advantages


WRONG_PLAN_VALUE = 0.05
"""The value of a valid plan with a wrong answer in `maxrl_advantages`. The value of a right answer is 1."""


def maxrl_advantages(
    groups: Sequence[Rewards],
    *,
    scale_rewards: ScaleRewards = "group",
    std_eps: float = PAPER_STD_EPS,
) -> list[Advantages]:
    """(value - mean of the group) / mean of the group (MaxRL, arXiv 2602.02710).

    The mean of the group estimates the probability of a right answer, so this is the gradient of the logarithm of that
    probability: the fewer plans of a group are right, the more each right plan counts. Podium also rewards a valid plan
    with a wrong answer. Its value is `WRONG_PLAN_VALUE`, and below and above that the value is linear in the reward.
    The divisor is at least `WRONG_PLAN_VALUE`, so that a valid plan among invalid plans does not count as right. In a
    group of equal rewards every advantage is exactly 0. `scale_rewards` and `std_eps` are not used.
    """
    advantages = []
    for rewards in groups:
        values = [None if reward is None else _maxrl_value(reward) for reward in rewards]
        mean, _ = _mean_and_deviation(values)
        scale = max(mean, WRONG_PLAN_VALUE)
        advantages.append(tuple(None if value is None else (value - mean) / scale for value in values))
    return advantages


def _maxrl_value(reward: float) -> float:
    return (
        WRONG_PLAN_VALUE * min(reward, WRONG_ANSWER_REWARD)
        + (1 - WRONG_PLAN_VALUE) * max(reward - WRONG_ANSWER_REWARD, 0.0)
    ) / WRONG_ANSWER_REWARD


ADVANTAGES: dict[str, Callable[..., list[Advantages]]] = {"grpo": grpo_advantages, "maxrl": maxrl_advantages}
"""The advantages by their names in settings. All take the arguments of `grpo_advantages`."""


def _mean_and_deviation(rewards: Rewards) -> tuple[float, float]:
    """Mean and standard deviation of the known rewards. For equal rewards or fewer than two, the deviation is exactly
    0."""
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or min(known) == max(known):
        return (known[0] if known else 0.0), 0.0
    return fmean(known), stdev(known)


TokenWeights = Callable[..., tuple[float, ...]]
"""How the loss averages over tokens: a function (lengths, *, max_tokens) that returns the weight of each token of each
completion of the batch. `lengths` has the number of tokens of every completion with an advantage, even if all
advantages of its group are 0, so the trainer can compute the loss for a few groups at a time and add up the
gradients."""


def mean_over_tokens(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """The mean over all tokens of the batch."""
    return (1.0 / max(sum(lengths), 1),) * len(lengths)


def mean_over_completions(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """The mean over the tokens of each completion, and then over completions."""
    return tuple(1.0 / (max(length, 1) * len(lengths)) for length in lengths)


def mean_over_limits(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """The sum over all tokens, divided by the number of completions times `max_tokens`."""
    return (1.0 / (max_tokens * max(len(lengths), 1)),) * len(lengths)


LOSSES: dict[str, TokenWeights] = {
    "bnpo": mean_over_tokens,  # the paper's code
    "grpo": mean_over_completions,
    "dr_grpo": mean_over_limits,
}
"""The weights of tokens in `clipped_surrogate`, by the loss's name in settings, which TRL uses too."""


def clipped_surrogate(
    logprobs_N: Tensor,
    weighted_advantages_N: Tensor,
    *,
    old_logprobs_N: Tensor | None = None,
    clip: float = 0.2,
) -> Tensor:
    """The clipped surrogate, summed over tokens (the paper, equation 1, without its KL term).

    Args:
        logprobs_N: log-probabilities of the sampled tokens under the policy that is trained.
        weighted_advantages_N: the advantage of each token's completion times the token's weight, summed over equal
            completions whose advantages have the same sign.
        old_logprobs_N: log-probabilities of the same tokens under the policy that sampled them. None if the trained
            policy itself sampled them. Then the ratio is 1 and never clipped.
        clip: how far a ratio may be from 1. Beyond that, no gradient moves the ratio further away.
    """
    old_logprobs_N = logprobs_N.detach() if old_logprobs_N is None else old_logprobs_N
    ratio_N = (logprobs_N - old_logprobs_N).exp()
    clipped_N = ratio_N.clamp(1 - clip, 1 + clip)
    return -(ratio_N * weighted_advantages_N).minimum(clipped_N * weighted_advantages_N).sum()


def kl_to_reference(
    logprobs_N: Tensor, reference_logprobs_N: Tensor, *, old_logprobs_N: Tensor | None = None
) -> Tensor:
    """[N]: an estimate of the KL divergence from the reference at each sampled token (Schulman's k3, as in TRL).

    The estimate is never negative, and its mean over tokens that the policy samples is the KL divergence. As in TRL,
    each value is multiplied by the importance ratio, so that the mean also has the gradient of the KL divergence.
    """
    old_logprobs_N = logprobs_N.detach() if old_logprobs_N is None else old_logprobs_N
    log_ratio_N = reference_logprobs_N - logprobs_N
    return (log_ratio_N.exp() - log_ratio_N - 1) * (logprobs_N - old_logprobs_N).exp()
