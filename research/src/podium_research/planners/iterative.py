"""Iterative decoding with a verifier (Iterative Agent Decoding, arXiv 2504.01931).

In each iteration a worker writes several candidates and a verifier gives each a score. The next candidates are written
in sight of the best and the worst candidate so far and of the verifier's critique. A perfect score ends it early. The
answer is the best candidate of all iterations, not the last one. It pays where the verifier can check, as a program
that runs tests does; with a verifier that only guesses it is an expensive vote.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.plugin_api.planners import (
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Workflow,
    plan_rounds,
    worker_step,
    workflow_plan,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.planners.rounds import all_rounds, first_json_object

_PERFECT = 10.0
_BETTER = (
    "You are shown the best candidate answer so far, then the worst, if there are two, and last what a verifier said "
    f"of candidates. Keep what is right, mend what is wrong, and write a better answer. {ANSWER_WHOLE_QUESTION}"
)
_VERIFY = (
    "Check each candidate answer that you are shown. Then reply with this JSON object and nothing else: "
    '{"scores": [one number from 0 (wrong) to 10 (certainly right) for each candidate, in the order shown], '
    '"critique": "what the best candidate does better than the worst, and what is still wrong with it"}'
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate and the verifier's score, from 0 to 10."""

    score: float
    step: RoundStep


@dataclass(frozen=True, slots=True)
class Iterative(Planner):
    """`worker` writes `candidates` in each of at most `iterations`; `verifier` scores them."""

    worker: str
    verifier: str
    candidates: int = 4
    iterations: int = 3

    @property
    def name(self) -> str:
        return f"iterative:{self.worker}>{self.verifier}"

    @property
    def rounds(self) -> int:
        """One for each iteration, and one that accepts."""
        return self.iterations + 1

    async def plan(self, request: PlanRequest) -> Plan:
        """The next candidates, or the best of all; `ConfigError` if the pool lacks a worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        if all_rounds(request) == 1:  # Nothing could be accepted after the verifier.
            yield workflow_plan(Workflow((worker_step(request, self.worker, ANSWER_WHOLE_QUESTION),)))
            return None
        known: list[Scored] = []
        shows: tuple[RoundStep, ...] = ()
        for number in range(min(self.iterations, all_rounds(request) - 1)):
            subtask = _BETTER if shows else ANSWER_WHOLE_QUESTION
            written = [worker_step(request, self.worker, subtask, sees=bool(shows))] * self.candidates
            judged = worker_step(request, self.verifier, _VERIFY, reads=range(self.candidates))
            outcome = yield workflow_plan(Workflow((*written, judged)), shows)
            *texts, verdict = outcome.responses
            steps = [(number, step) for step, text in enumerate(texts) if text is not None]
            known += map(Scored, _scores(verdict, len(steps)), steps)
            if not known:
                continue
            best, worst = _best(known), min(known, key=lambda candidate: candidate.score)
            if best.score >= _PERFECT:
                break
            critique = [(number, self.candidates)] if verdict is not None else []
            shows = tuple(dict.fromkeys([best.step, worst.step, *critique]))
        return _best(known).step if known else None


def _best(known: list[Scored]) -> Scored:
    """The first of those with the highest score."""
    return max(known, key=lambda candidate: candidate.score)


def _scores(verdict: str | None, count: int) -> list[float]:
    """A score for each candidate that was shown; all 0 if the verifier does not give one for each."""
    listed = (first_json_object(verdict) or {}).get("scores")
    scores = listed if isinstance(listed, list) else []
    if len(scores) != count or not all(
        type(score) in (int, float) and 0 <= score <= _PERFECT for score in scores
    ):
        return [0.0] * count
    return [float(score) for score in scores]


def _open(context: BaselineContext) -> Iterative:
    (worker,), (verifier,) = context.layers
    return Iterative(worker, verifier)


BASELINE = PlannerSpec(
    "iterative:WORKER>VERIFIER",
    _open,
    team_only=True,
    on_recordings=False,
)
