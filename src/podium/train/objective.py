"""What GRPO maximises: the advantage of each rollout, the loss of each token, the weight of the KL term.

Settings choose an advantage by its name in `ADVANTAGES` and a loss by its name in `LOSSES`. To add one, write its
function in a file of its own and add a line to the table. Everything here is pure, and nothing loads torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

PAPER_STD_EPS = 1e-4
"""What the paper's code adds to the standard deviation."""


Rewards = Sequence[float | None]
"""The rewards of one group. None: workers failed that rollout, so it has no advantage and counts in no other."""

Advantages = tuple[float | None, ...]


class Advantage(Protocol):
    """How the rewards of a batch become advantages."""

    def __call__(self, groups: Sequence[Rewards], *, std_eps: float) -> list[Advantages]:
        """The advantages of each group.

        Args:
            std_eps: added to a standard deviation that advantages are divided by. A value far above the paper's keeps
                small differences small. With the paper's, a group whose answers are all right and whose costs differ
                by a cent has advantages as large as a group in which some answers are wrong.
        """
        ...


def grpo_advantages(groups: Sequence[Rewards], *, std_eps: float = PAPER_STD_EPS) -> list[Advantages]:
    """(reward - mean) / (standard deviation + std_eps), both of the group (the paper, equation 2).

    The standard deviation divides by n - 1, as in the paper's trainer. In a group of equal rewards every advantage is
    exactly 0.
    """
    return [
        tuple(None if reward is None else (reward - mean) / (deviation + std_eps) for reward in rewards)
        if deviation
        else tuple(None if reward is None else 0.0 for reward in rewards)
        for rewards in groups
        for mean, deviation in [_mean_and_deviation(rewards)]
    ]


ADVANTAGES: dict[str, Advantage] = {"grpo": grpo_advantages}
"""By the name that settings have for them."""


def _mean_and_deviation(rewards: Rewards) -> tuple[float, float]:
    """Of the known rewards; the standard deviation is exactly 0 where they are equal, or fewer than two."""
    known = [reward for reward in rewards if reward is not None]
    if len(known) < 2 or min(known) == max(known):
        return (known[0] if known else 0.0), 0.0
    return fmean(known), stdev(known)


class TokenWeights(Protocol):
    """How tokens are averaged."""

    def __call__(self, lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
        """The weight of each token of each completion of the batch.

        Args:
            lengths: tokens of every completion that counts, those of groups with equal rewards included.
            max_tokens: the longest that a completion may be.
        """
        ...


class Surrogate(Protocol):
    """What a loss makes of log-probabilities and advantages."""

    def __call__(
        self,
        logprobs_N: Tensor,
        weighted_advantages_N: Tensor,
        *,
        old_logprobs_N: Tensor | None = None,
        clip: float = 0.2,
    ) -> Tensor:
        """The loss, summed over tokens.

        Args:
            logprobs_N: of the sampled tokens under the policy that is trained.
            weighted_advantages_N: the advantage of each token's completion, times the token's weight.
            old_logprobs_N: under the policy that sampled them. None: that is the policy before this one step, so the
                ratio is 1 and never clipped, and its gradient is that of the log-probability.
            clip: how far the ratio may leave 1 before a further step in that direction gains nothing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss is a weighted sum over tokens, and the weights depend on the lengths of the whole batch alone.

    So it can be taken a few groups at a time and the gradients added up: the result is that of the batch.
    """

    token_weights: TokenWeights
    surrogate: Surrogate


def mean_over_tokens(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """Over all tokens of the batch."""
    return (1.0 / max(sum(lengths), 1),) * len(lengths)


def mean_over_completions(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """Over the tokens of each completion, and then over completions."""
    return tuple(1.0 / (max(length, 1) * len(lengths)) for length in lengths)


def mean_over_limits(lengths: Sequence[int], *, max_tokens: int) -> tuple[float, ...]:
    """Over completions, as if each had as many tokens as it may have."""
    return (1.0 / (max_tokens * max(len(lengths), 1)),) * len(lengths)


def clipped_surrogate(
    logprobs_N: Tensor,
    weighted_advantages_N: Tensor,
    *,
    old_logprobs_N: Tensor | None = None,
    clip: float = 0.2,
) -> Tensor:
    """The clipped surrogate (the paper, equation 1, without its KL term); see `Surrogate`."""
    old_logprobs_N = logprobs_N.detach() if old_logprobs_N is None else old_logprobs_N
    ratio_N = (logprobs_N - old_logprobs_N).exp()
    clipped_N = ratio_N.clamp(1 - clip, 1 + clip)
    return -(ratio_N * weighted_advantages_N).minimum(clipped_N * weighted_advantages_N).sum()


LOSSES: dict[str, Loss] = {
    "bnpo": Loss(mean_over_tokens, clipped_surrogate),  # the paper's code
    "grpo": Loss(mean_over_completions, clipped_surrogate),
    "dr_grpo": Loss(mean_over_limits, clipped_surrogate),
}
"""By the name that settings, and TRL, have for them."""


def kl_weight(iteration: int, *, first: float, last: float | None, iterations: int) -> float:
    """The weight of an iteration counted from 0: from `first` to `last` in equal ratios; to 0 in equal steps."""
    if last is None or iterations < 2:
        return first
    progress = iteration / (iterations - 1)
    if min(first, last) == 0:
        return first + (last - first) * progress
    return float(first * (last / first) ** progress)
