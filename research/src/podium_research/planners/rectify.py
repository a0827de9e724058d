"""Rectify or reject (AgentDropoutV2, arXiv 2602.23258, with fixed audits): answers that fail their audits are dropped.

Each worker answers. The auditor examines each answer once for each of `AUDITS`. A finding counts only if it proposes a
concrete change and says that the final answer changes: an answer is presumed right. A worker whose answer has a finding
answers again, at most three times, and sees only its last answer and the findings. If there is still a finding, its
answer is dropped. The others are voted on. If at most one is left of several, the workers answer anew, without audits.

The authors also fetch audits that fit the question, by embeddings; this is their mode with fixed ones. Between workers,
retries run one after another, so that no worker sees another's answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium.planners.baseline import voting_step
from podium.plugin_api.planners import (
    Access,
    BaselineContext,
    EarlierRound,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Step,
    Workflow,
    most_common,
    plan_rounds,
    voted_round_plan,
    worker_step,
    workflow_plan,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workers.vote import vote_key
from podium_research.planners.rounds import all_rounds, first_json_object

RETRIES = 3
AUDITS = (
    "it misreads the question, leaves out a condition or answers another question",
    "a step of the reasoning or a calculation is wrong, or a claim is made up",
    "the final answer is missing, is not in the form asked for, or does not follow from the reasoning",
)
_AUDIT = (
    "Audit the latest answer shown for one fault only: {fault}. Presume that the answer is right. Reply with one JSON "
    'object: {{"evidence": a quotation, "analysis": why, "suggestion": the concrete change or "", '
    '"answer_changes": true or false, "is_flawed": true or false}}.'
)
RETRY = (
    "An audit of your last answer found faults; both are shown. Check them, and leave aside what you are sure is "
    "wrong about them. Then answer the whole question again."
)


@dataclass(frozen=True, slots=True)
class RectifyOrReject(Planner):
    """The workers `members` answer, of which one may occur several times; `auditor` audits."""

    members: tuple[str, ...]
    auditor: str

    @property
    def name(self) -> str:
        return f"rectify-or-reject:{'+'.join(self.members)}>{self.auditor}"

    @property
    def rounds(self) -> int:
        """One for all first answers, one for each retry, one to answer without audits, and one to accept."""
        return 3 + RETRIES * len(self.members)

    async def plan(self, request: PlanRequest) -> Plan:
        """The next audited answers, or the surviving majority; `ConfigError` if the pool lacks a worker or the vote."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        count = len(self.members)
        steps = [worker_step(request, member, ANSWER_WHOLE_QUESTION) for member in self.members]
        for answer in range(count):
            steps += self._audits(request, answer)
        earlier_round = yield workflow_plan(Workflow((*steps, _vote(request, count))))
        survivors: list[tuple[RoundStep, str]] = []
        first, number, last = earlier_round, 0, all_rounds(request) - 1
        for answer, member in enumerate(self.members):
            earlier_round, round_number, step = first, 0, answer
            start = count + len(AUDITS) * answer
            findings = _findings(earlier_round, start)
            for _ in range(RETRIES):
                if not findings or earlier_round.responses[step] is None or number + 1 >= last:
                    break
                shows = ((round_number, step), *((round_number, finding) for finding in findings))
                retry = worker_step(request, member, RETRY, sees=True)
                audits = self._audits(request, 0)
                earlier_round = yield workflow_plan(Workflow((retry, *audits, _vote(request, 1))), shows)
                number += 1
                round_number, step = number, 0
                findings = _findings(earlier_round, 1)
            response = earlier_round.responses[step]
            if response is not None and not findings:
                survivors.append(((round_number, step), response))
        if len(survivors) < min(2, count):
            anew = yield voted_round_plan(
                request, [worker_step(request, member, ANSWER_WHOLE_QUESTION) for member in self.members]
            )
            if anew.response:
                return None
            # If nobody could answer anew, an answer with a finding is better than the text of an audit.
            survivors = survivors or [
                ((0, step), text) for step, text in enumerate(first.responses[:count]) if text is not None
            ]
        if not survivors:
            return None
        answers = [vote_key(response) for _, response in survivors]
        winner, _ = most_common(answers)
        return survivors[answers.index(winner)][0]

    def _audits(self, request: PlanRequest, answer: int) -> list[Step]:
        """The audits of the answer that the step `answer` gives."""
        return [
            worker_step(request, self.auditor, _AUDIT.format(fault=fault), reads=[answer]) for fault in AUDITS
        ]


def _vote(request: PlanRequest, answers: int) -> Step:
    """A vote on `answers` answers. It also reads their audits, with weight 0, since a step that nothing reads is not
    run."""
    weights = [1.0] * answers + [0.0] * (answers * len(AUDITS))
    return replace(voting_step(request.pool, weights), access=Access(steps=tuple(range(len(weights)))))


def _findings(earlier_round: EarlierRound, start: int) -> tuple[int, ...]:
    """Positions of the audits from `start` on whose finding counts. An audit that cannot be read has none."""
    return tuple(
        step for step in range(start, start + len(AUDITS)) if counts_as_finding(earlier_round.responses[step])
    )


def counts_as_finding(audit: str | None) -> bool:
    """Whether an audit says that the answer is flawed, how to change it, and that the final answer then changes."""
    verdict = first_json_object(audit) or {}
    suggestion = verdict.get("suggestion")
    concrete = isinstance(suggestion, str) and suggestion.strip() != ""
    return concrete and verdict.get("is_flawed") is True and verdict.get("answer_changes") is True


def _open(context: BaselineContext) -> RectifyOrReject:
    members, (auditor,) = context.layers
    return RectifyOrReject(members, auditor)


BASELINE = PlannerSpec(
    "rectify-or-reject:A+B>AUDITOR",
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
