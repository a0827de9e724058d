"""A weighted vote: each worker's vote weighs the log-odds of its accuracy on other questions.

A vote weighs log(p / (1 - p)) + log(w), where p is the worker's accuracy and w the number of wrong answers that a
question has. These are the best weights if workers err independently and all wrong answers are equally likely (Nitzan &
Paroush 1982 for w = 1, Kuncheva & Rodríguez 2014). The scored answers do not tell w, so it is `WRONG_ANSWERS`. If w is
too small, a worker that is wrong more often than right has no voice; if it is too large, the weights are nearly equal.
"""

from __future__ import annotations

import math

from podium.errors import ConfigError
from podium.planners.baseline import Baseline, BaselineContext, named_in, read_members, read_worker
from podium.planners.scored import ScoredAnswers
from podium.planners.voting import Committee
from podium.workers.vote import VOTE

WRONG_ANSWERS = 9
"""As with ten options to choose from."""
_LEAST = 0.01
"""The weight of a vote at least; the voting tool reads no negative ones."""


def vote_weight(scored: ScoredAnswers, worker: str, *, wrong_answers: int = WRONG_ANSWERS) -> float:
    """The weight of a worker's vote, at least 0.01. For its accuracy, one right and one wrong answer are added.

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
    return max(_LEAST, round(math.log(share / (1 - share)) + math.log(wrong_answers), 4))


def _open(argument: str, context: BaselineContext) -> Committee:
    assert context.scored is not None
    named = read_members(argument)
    members = tuple(read_worker(member, context, "weighted-vote") for member in named)
    members = members or tuple(one.name for one in context.pool if one.name in context.scored.workers)
    return Committee(members, tuple(vote_weight(context.scored, member) for member in members))


BASELINE = Baseline(
    "weighted-vote:A+B",
    _open,
    needs=lambda argument: (*named_in(argument), VOTE),
    learns=True,
    examples=lambda workers: [f"weighted-vote:{'+'.join(workers)}", "weighted-vote"],
)
