"""What right answers cost: dollars, tokens, calls, seconds."""

from __future__ import annotations

import math

import numpy as np

from podium.evals.comparison import Figure
from podium.evals.evaluation import Evaluation
from podium.evals.measures.arrays import cost_by_repeat, right_by_repeat
from podium.ratings.answers import Floats
from podium.trace import RoundTrace, Trace
from podium.types import Value


class Spending(Value):
    """What one planner spends. Means give each question the same weight."""

    cost_usd: Figure
    """Dollars a question, the planner's own included; a cached answer counts with its original cost."""
    cost_of_pass: Figure
    """Dollars a right answer: dollars a question divided by accuracy; infinite where no answer was right."""
    never_right: float
    """The share of questions without any right answer: there, more attempts seem to buy nothing."""
    tokens: float
    """Input and output tokens a question, of workers and planner."""
    calls: float
    """Worker calls a question."""
    seconds: float | None
    """Seconds along the critical path, planning left out; None: the traces hold no times."""
    first_token_s: float | None
    """Seconds until the first token of the answer, planning included, over the questions whose trace holds it; None:
    no trace does, since nothing was streamed or the workers are simulated."""
    first_token_known: float
    """The share of rollouts that `first_token_s` is the mean of."""


def measure_spending(evaluation: Evaluation) -> Spending:
    """The spending of one planner."""
    right_QR = right_by_repeat(evaluation)
    seconds = evaluation.latency_s
    firsts = [first_token_s(rollout.trace) for rollout in evaluation.rollouts]
    known = [found for found in firsts if found is not None]
    return Spending(
        cost_usd=evaluation.cost_usd,
        cost_of_pass=cost_of_pass(right_QR, cost_by_repeat(evaluation)),
        never_right=float((np.nan_to_num(right_QR).max(axis=1) == 0).mean()),
        tokens=evaluation.mean(lambda rollout: rollout.trace.usage.tokens),
        calls=evaluation.calls,
        seconds=seconds if seconds > 0 and math.isfinite(seconds) else None,
        first_token_s=sum(known) / len(known) if known else None,
        first_token_known=len(known) / len(firsts),
    )


def cost_of_pass(right_QR: Floats, cost_QR: Floats) -> float:
    """Cost-of-Pass (Erol et al. 2025, arXiv 2504.13359): E[dollars of an attempt] / P(right); infinite where P is 0.

    Both are means over all questions, each with the same weight. With [1, R] it is the cost of pass of one question.
    Answers that could not be graded (NaN) count in neither.
    """
    known_QR = ~np.isnan(right_QR)
    asked = known_QR.any(axis=1)
    if not asked.any():
        return math.inf
    counts_Q = known_QR[asked].sum(axis=1)
    right = float((np.nan_to_num(right_QR[asked]).sum(axis=1) / counts_Q).mean())
    usd = float((np.where(known_QR, np.nan_to_num(cost_QR), 0.0)[asked].sum(axis=1) / counts_Q).mean())
    return usd / right if right > 0 else math.inf


def first_token_s(trace: Trace) -> float | None:
    """Seconds from the question to the first token of its answer, with idle workers; None: the trace does not tell.

    Planning and earlier rounds come first, then the chain of steps that the answering step waits for. If the planner
    accepted the answer in a further round, the user gets it whole when the planner has decided.
    """
    run = [round_ for round_ in trace.rounds if round_.spans]
    if not run or trace.answer is None:
        return None
    planning = sum(round_.plan_seconds for round_ in trace.rounds)
    if trace.rounds[-1].accepted:
        return planning + trace.critical_path_s
    last = run[-1]
    answering = next((span for span in reversed(last.spans) if span.status == "done"), None)
    if answering is None or answering.first_token_s is None:
        return None
    earlier = sum(round_.critical_path_s for round_ in run[:-1])
    return planning + earlier + _waiting_s(last, answering.position) + answering.first_token_s


def _waiting_s(round_: RoundTrace, position: int) -> float:
    """Seconds along the slowest chain of steps that this step waits for."""
    spans = {span.position: span for span in round_.spans}
    needed: set[int] = set()
    open_ = [position]
    while open_:
        span = spans[open_.pop()]
        open_ += [
            before for before in (*span.reads, *span.waited) if before not in needed and before in spans
        ]
        needed.update(open_)
    before = tuple(span for span in round_.spans if span.position in needed)
    return round_.model_copy(update={"spans": before}).critical_path_s
