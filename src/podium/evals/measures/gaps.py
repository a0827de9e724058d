"""How far a planner is ahead of the best single worker and behind an oracle.

The oracle takes the answer of a worker that is right, if there is one: it bounds planners that choose one worker and
call it once. Plans of several steps may pass it. LLMRouterBench (Li et al. 2026, arXiv 2601.07206) compares routers
with the same two references.
"""

from __future__ import annotations

import numpy as np

from podium.evals.measures.arrays import mean_over_repeats, stacked
from podium.evals.stats import Interval, paired_difference
from podium.ratings.answers import Floats
from podium.types import Value


class Gaps(Value):
    """A planner beside its bounds, in points of accuracy."""

    ahead_of_best: Interval | None
    """Gap@best: its accuracy minus that of the best single worker, paired by question; None: one question."""
    behind_oracle: Interval | None
    """Gap@oracle: the oracle's accuracy minus its own; None: one question."""


def measure_gaps(right_QR: Floats, single_WQR: Floats, best: int) -> Gaps | None:
    """The gaps of one planner.

    Args:
        right_QR: whether the planner was right; NaN: not known.
        single_WQR: the same for each single worker on the same questions. Repeat r of the planner is compared with
            repeat r of the workers.
        best: number of the best single worker.

    Returns:
        None: no answer is known of all.
    """
    repeats = min(right_QR.shape[1], single_WQR.shape[2])
    all_XQR = stacked([right_QR[:, :repeats], *single_WQR[:, :, :repeats]])
    known_QR = ~np.isnan(all_XQR).any(axis=0)
    if not known_QR.any():
        return None
    all_XQR = np.where(known_QR, all_XQR, np.nan)
    planner_QR, oracle_QR = all_XQR[0], all_XQR[1:].max(axis=0)
    shares_3Q = [mean_over_repeats(values) for values in (planner_QR, all_XQR[1 + best], oracle_QR)]
    planner_Q, best_Q, oracle_Q = (shares[~np.isnan(shares_3Q[0])].tolist() for shares in shares_3Q)
    return Gaps(
        ahead_of_best=paired_difference(planner_Q, best_Q),
        behind_oracle=paired_difference(oracle_Q, planner_Q),
    )
