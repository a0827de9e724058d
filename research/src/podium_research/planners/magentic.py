"""Magentic-One's leader with a ledger (Fourney et al. 2024, arXiv 2411.04468).

The leader collects facts and writes a plan. After every answer of a worker it fills in a ledger: is the question
answered, does the team go in circles, who speaks next, and what is that worker told. Turns without progress count as
stalls, turns with progress take one back; after more than three the leader starts again with new facts and a new plan.

Unlike the original, the ledger also says whether a result is final although it is empty: a search that rightly finds
nothing would otherwise count as a stall until the rounds are used up.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from podium.types import ANSWER_WHOLE_QUESTION, Profile
from podium_research.planners.rounds import all_rounds, first_json_object

_MAX_STALLS = 3
_MAX_RESETS = 2
_MAX_TRIES = 3
"""How often the leader may write a ledger that can be read."""
_FACTS = (
    "Before work begins, list what is known about the question: facts that it gives, facts to look up, facts to "
    "derive, and educated guesses."
)
_NEW_FACTS = (
    "The team made no progress. Correct and complete the list of facts from what you are shown, and add one educated "
    "guess."
)
_PLAN = (
    "Write a short plan in bullet points for this team, from the facts that you are shown. The team:\n{team}"
)
_NEW_PLAN = "Say what went wrong. Then write a new plan in bullet points that avoids it. The team:\n{team}"
_LEDGER = """Judge the work on the question so far. Reply with this JSON object and nothing else:
{{"is_request_satisfied": true or false,
"is_result_final_even_if_empty": true or false (true also if the right result is that nothing was found),
"is_in_loop": true or false,
"is_progress_being_made": true or false,
"next_speaker": one of {names},
"instruction_or_question": "what you tell that worker"}}
The team:
{team}"""
_AGAIN = "Your last reply was not such an object, or named no worker of the team.\n\n"
_FINAL = "The work that you are shown is done. Give the final answer to the question, and say nothing about the team."


@dataclass(frozen=True, slots=True)
class ProgressLedger:
    """What the leader wrote after a turn."""

    done: bool
    stalled: bool
    speaker: str
    instruction: str


@dataclass(frozen=True, slots=True)
class Magentic(Planner):
    """`leader` keeps the ledger; the workers `members` do the work."""

    rounds = 17
    """One that begins, up to 14 turns, the answer, and one to accept: the answer's call may fail."""

    leader: str
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"magentic:{self.leader}>{'+'.join(self.members)}"

    async def plan(self, request: PlanRequest) -> Plan:
        """The next worker with its instruction, new facts, or the final answer; `ConfigError`: a worker is missing."""
        return plan_rounds(request, self._rounds(request))

    def _rounds(self, request: PlanRequest) -> Rounds:
        last = min(self.rounds - 1, all_rounds(request)) - 1  # The round that gives the answer.
        number = stalls = resets = unread = 0
        notes: list[RoundStep] = []  # Facts and plan.
        results: list[RoundStep] = []
        latest: RoundStep | None = None
        round_plan, starts = self._start(request, _FACTS, _PLAN), True
        while number < last:
            outcome = yield round_plan
            work = [(number, step) for step, text in enumerate(outcome.responses[:-1]) if text is not None]
            notes, results = (work, []) if starts else (notes, results + work)
            latest = results[-1] if results else latest
            number += 1
            ledger = _read(outcome.responses[-1], self.members)
            if ledger is None:
                unread += 1
                if unread == _MAX_TRIES:
                    break
                round_plan, starts = self._after(request, (), [*notes, *results], again=True), False
                continue
            unread = 0
            stalls = stalls + 1 if ledger.stalled else max(0, stalls - 1)
            if ledger.done or (stalls > _MAX_STALLS and resets == _MAX_RESETS):
                break
            if stalls > _MAX_STALLS:
                round_plan, starts = self._start(request, _NEW_FACTS, _NEW_PLAN, [*notes, *results]), True
                stalls, resets = 0, resets + 1
            else:
                instructed = (ledger.speaker, ledger.instruction)
                round_plan, starts = self._after(request, instructed, [*notes, *results]), False
        answer = worker_step(
            request, self.leader, _FINAL if number else ANSWER_WHOLE_QUESTION, sees=number > 0
        )
        outcome = yield workflow_plan(Workflow((answer,)), (*notes, *results))
        return latest if outcome.responses[0] is None else None

    def _start(self, request: PlanRequest, facts: str, plan: str, shown: Sequence[RoundStep] = ()) -> Plan:
        """Facts, plan and the first ledger."""
        sees = bool(shown)
        steps = (
            worker_step(request, self.leader, facts, sees=sees),
            worker_step(
                request, self.leader, plan.format(team=self._team(request.pool)), reads=(0,), sees=sees
            ),
            worker_step(request, self.leader, self._ledger(request.pool), reads=(0, 1)),
        )
        return workflow_plan(Workflow(steps), tuple(shown))

    def _after(
        self,
        request: PlanRequest,
        told: tuple[str, str] | tuple[()],
        shown: Sequence[RoundStep],
        *,
        again: bool = False,
    ) -> Plan:
        """A worker's turn, and the ledger after it; without `told` only the ledger."""
        ledger = (_AGAIN if again else "") + self._ledger(request.pool)
        work = [worker_step(request, *told, sees=bool(shown))] if told else []
        judged = worker_step(request, self.leader, ledger, reads=range(len(work)), sees=bool(shown))
        return workflow_plan(Workflow((*work, judged)), tuple(shown))

    def _ledger(self, pool: Sequence[Profile]) -> str:
        return _LEDGER.format(names=", ".join(dict.fromkeys(self.members)), team=self._team(pool))

    def _team(self, pool: Sequence[Profile]) -> str:
        described = {profile.name: profile.description for profile in pool}
        return "\n".join(
            f"- {name}: {described.get(name, '')}".rstrip(": ") for name in dict.fromkeys(self.members)
        )


def _read(response: str | None, members: Sequence[str]) -> ProgressLedger | None:
    """The ledger in a response. None if there is none, or it names no worker although the work goes on."""
    written = first_json_object(response)
    if written is None:
        return None

    def value(key: str) -> object:
        field = written.get(key)
        return field.get("answer") if isinstance(field, dict) else field

    def is_true(key: str) -> bool:
        return str(value(key)).strip().casefold() in ("true", "yes")

    done = is_true("is_request_satisfied") or is_true("is_result_final_even_if_empty")
    speaker, instruction = str(value("next_speaker")).strip(), str(value("instruction_or_question")).strip()
    if not done and speaker not in members:
        return None
    stalled = is_true("is_in_loop") or not is_true("is_progress_being_made")
    return ProgressLedger(done, stalled, speaker, instruction or ANSWER_WHOLE_QUESTION)


def _open(context: BaselineContext) -> Magentic:
    (leader,), members = context.layers
    return Magentic(leader, members)


BASELINE = PlannerSpec(
    "magentic:LEADER>A+B",
    _open,
    team_only=True,
    on_recordings=False,
)
