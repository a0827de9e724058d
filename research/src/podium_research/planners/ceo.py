"""The leader of "Two Heads are Better Than One" (Jin et al. 2025, arXiv 2504.09772), a CEO that spends the budget.

For each turn the leader decides how many experts work and how many tokens each of their answers may have, and names
the experts. The first one writes a solution and the others criticise it, at most three times or until all agree. Then
the leader judges the solution, and if it is wrong, decides anew. The original's evaluator and recruiter are the leader.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from podium.plugin_api.planners import (
    BaselineContext,
    EarlierRound,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Rounds,
    RoundStep,
    Workflow,
    plan_rounds,
    voted_round_plan,
    worker_step,
    workflow_plan,
)
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.planners.rounds import all_rounds, first_json_object

_TURNS = 2
_DISCUSSIONS = 3
"""How often a solution is written and criticised in a turn."""
_MAX_EXPERTS = 4
_TOKENS = (2048, 4096, 8192, 16384, 32000)
_DECIDE = f"""You lead a team and pay for its work. Reply with this JSON object and nothing else:
{{"decision": "Continue", or "Stop" if the solution that you are shown is right,
"recruit_number": how many experts work on the question: 1 if it is easy, 2 or 3 usually, 4 if it is complex,
"direction": "what they should attend to",
"maximum_tokens": the most tokens of each of their answers: {", ".join(map(str, _TOKENS))}, or 0 for no limit}}"""
_RECRUIT = (
    "Name the experts for this question, as many as the decision that you are shown says, with fields that do not "
    'overlap. Reply with this JSON object and nothing else: {"experts": ["a field and what the expert looks at", ...]}'
)
_SOLVE = f"If you are shown a solution, improve it by what is said of it. {ANSWER_WHOLE_QUESTION}"
_CRITICISE = (
    "Check the solution that you are shown and say what is wrong with it. End with [Agree] if it is right as it is, "
    "otherwise with [Disagree]."
)
_JUDGE = (
    "Judge the solution that you are shown. Reply with this JSON object and nothing else: "
    '{"correct": 0 or 1, "advice": "what a better solution needs, and which experts"}'
)
_VERDICT = re.compile(r"\[(agree|disagree)\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """What the leader decided for a turn."""

    stop: bool = False
    experts: tuple[str, ...] = ("a generalist",)
    """What each of them is an expert for."""
    direction: str = ""
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CEO(Planner):
    """`leader` decides and judges; expert k is the worker `members[k]`, and after the last the first follows again."""

    rounds = _TURNS * (2 + _DISCUSSIONS) + 1

    leader: str
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"ceo:{self.leader}>{'+'.join(self.members)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """A decision, a discussion, a judgement, or the solution; `ConfigError` if the pool lacks a worker."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        last = min(self.rounds, all_rounds(request)) - 1  # The round that gives the answer.
        number = 0
        solution: RoundStep | None = None
        remarks: list[RoundStep] = []
        for _ in range(_TURNS):
            if number >= last:
                break
            decision = _decision((yield self._decide(request, _shown(solution, remarks))))
            number += 1
            if decision.stop and solution is not None:
                break
            for _ in range(_DISCUSSIONS):
                if number >= last:
                    break
                earlier_round = yield self._discuss(request, decision, _shown(solution, remarks))
                written, *criticisms = earlier_round.responses[: len(decision.experts)]
                if written is not None:
                    solution = (number, 0)
                    remarks = [
                        (number, step) for step, text in enumerate(criticisms, start=1) if text is not None
                    ]
                number += 1
                if written is not None and all(map(_agrees, criticisms)):
                    break
            if number >= last or solution is None:
                break
            judgement = yield self._judge(request, solution)
            if _is_right(judgement.response):
                break
            remarks.append((number, 0))
            number += 1
        if solution is None:
            yield workflow_plan(Workflow((worker_step(request, self.members[0], ANSWER_WHOLE_QUESTION),)))
        return solution

    def _decide(self, request: PlanRequest, shown: tuple[RoundStep, ...]) -> Plan:
        decide = worker_step(request, self.leader, _DECIDE, sees=bool(shown))
        return workflow_plan(
            Workflow((decide, worker_step(request, self.leader, _RECRUIT, reads=(0,)))), shown
        )

    def _discuss(self, request: PlanRequest, decision: TurnDecision, shown: tuple[RoundStep, ...]) -> Plan:
        """A solution and the criticism of it, all within the leader's limit of tokens."""
        tasks = [
            f"You are an expert for this: {expert}\n{decision.direction}\n{_CRITICISE if k else _SOLVE}"
            for k, expert in enumerate(decision.experts)
        ]
        steps = [
            worker_step(
                request,
                self.members[k % len(self.members)],
                task,
                reads=(0,) if k else (),
                sees=not k and bool(shown),
            )
            for k, task in enumerate(tasks)
        ]
        limits: list[int | None] = [decision.max_tokens] * len(steps)
        if len(steps) > 2:
            plan = voted_round_plan(request, steps, shown)
            limits.append(None)
        else:
            plan = workflow_plan(Workflow(tuple(steps)), shown)
        return replace(plan, max_tokens=tuple(limits))

    def _judge(self, request: PlanRequest, solution: RoundStep) -> Plan:
        return workflow_plan(Workflow((worker_step(request, self.leader, _JUDGE, sees=True),)), (solution,))


def _shown(solution: RoundStep | None, remarks: Sequence[RoundStep]) -> tuple[RoundStep, ...]:
    return () if solution is None else (solution, *remarks)


def _decision(earlier_round: EarlierRound) -> TurnDecision:
    """The decision with its experts. What cannot be read is as in an easy case: one expert, no limit."""
    decided, recruited = (first_json_object(response) or {} for response in earlier_round.responses)
    width = decided.get("recruit_number")
    count = min(_MAX_EXPERTS, max(1, width)) if type(width) is int else 1
    named = recruited.get("experts")
    experts = [str(expert)[:1000] for expert in named] if isinstance(named, list) else []
    experts = [*experts, *TurnDecision().experts * count][:count]
    tokens = decided.get("maximum_tokens")
    return TurnDecision(
        stop=str(decided.get("decision")).strip().casefold() == "stop",
        experts=tuple(experts),
        direction=str(decided.get("direction") or "")[:2000],
        max_tokens=tokens if type(tokens) is int and tokens in _TOKENS else None,
    )


def _agrees(criticism: str | None) -> bool:
    """Whether a critic agrees. One that failed does not hold up the others."""
    if criticism is None:
        return True
    verdicts = _VERDICT.findall(criticism)
    return bool(verdicts) and verdicts[-1].casefold() == "agree"


def _is_right(judgement: str) -> bool:
    return (first_json_object(judgement) or {}).get("correct") in (1, True, "1")


def _open(context: BaselineContext) -> CEO:
    (leader,), members = context.layers
    return CEO(leader, members)


BASELINE = PlannerSpec(
    "ceo:LEADER>A+B",
    _open,
    votes=True,
    team_only=True,
    on_recordings=False,
)
