"""A weighted vote: each worker's vote weighs the log-odds of its accuracy on other questions.

These are the best weights for two answers and workers that err independently (Nitzan & Paroush 1982). A worker that is
not right more often than wrong keeps a small weight, so it only breaks ties.
"""

from __future__ import annotations

import numpy as np

from podium.baselines.baseline import (
    Baseline,
    BaselineContext,
    ScoredAnswers,
    named_in,
    read_members,
    read_worker,
)
from podium.baselines.voting import Committee
from podium.errors import ConfigError
from podium.workers.vote import VOTE

_LEAST = 0.01
"""The weight of a vote at least; the voting tool reads no negative ones."""


def log_odds(scored: ScoredAnswers, worker: str) -> float:
    """log(p / (1 - p)), at least 0.01, where p is the share of right answers with one right and one wrong answer added.

    Raises:
        ConfigError: there are no answers of the worker.
    """
    if worker not in scored.workers:
        raise ConfigError(
            f"There are no scored answers of {worker!r}, from which its vote would get a weight; there are answers of "
            f"{', '.join(scored.workers)}."
        )
    score_Q = scored.score_QW[:, scored.workers.index(worker)]
    share = (score_Q.sum() + 1) / (len(score_Q) + 2)
    return max(_LEAST, round(float(np.log(share / (1 - share))), 4))


def _open(argument: str, context: BaselineContext) -> Committee:
    if context.scored is None:
        raise ConfigError("A weighted vote learns its weights from scored answers, and there are none.")
    named = read_members(argument) or context.scored.workers
    members = tuple(read_worker(member, context, "weighted-vote") for member in named)
    return Committee(members, tuple(log_odds(context.scored, member) for member in members))


BASELINE = Baseline(
    "weighted-vote:A+B",
    _open,
    needs=lambda argument: (*named_in(argument), VOTE),
    learns=True,
    examples=lambda workers: [f"weighted-vote:{'+'.join(workers)}", "weighted-vote"],
)
