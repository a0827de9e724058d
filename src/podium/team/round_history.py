"""The rounds of a question: the one that is under way, those that have ended, and what the answer is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from podium.calls import AttemptLog
from podium.executor import EarlyStart, Execution, RoundContext
from podium.planners.planner import EarlierRound
from podium.spending import Ledger
from podium.trace import Plan, RoundTrace, Span, TraceStatus
from podium.types import Spent, fast_replace
from podium.workers.pool import Pool
from podium.workers.tool import is_result
from podium.workflow import Workflow


@dataclass(slots=True)
class OpenRound:
    """The round that is under way."""

    number: int
    earlier_rounds: tuple[EarlierRound, ...]
    started_s: float
    planning: Ledger
    """The part of the question's ledger that counts what planning takes."""
    attempts: AttemptLog = field(default_factory=AttemptLog)
    """The tries of the calls of the planner's model."""
    planned: RoundTrace | None = None
    """The round with its plan, before a step of it has run. None while the plan is being written."""
    early_start: EarlyStart | None = None
    execution: Execution | None = None

    @property
    def abandoned(self) -> tuple[Span, ...]:
        """Steps that were started while the plan was being written, and that the plan does not have."""
        return () if self.early_start is None else self.early_start.abandoned

    def with_abandoned(self, trace: RoundTrace) -> RoundTrace:
        """This round's trace with its abandoned steps."""
        return trace.model_copy(update={"abandoned": self.abandoned}) if self.abandoned else trace

    @property
    def is_untouched(self) -> bool:
        """Whether there is no plan, and nothing was tried, paid or started for one."""
        tried = self.attempts or self.abandoned or self.planning.spent != Spent()
        return self.planned is None and not tried

    def measured(self, plan: Plan, elapsed_s: float) -> Plan:
        """The plan with what planning took. `elapsed_s` are the seconds since the trace began."""
        return fast_replace(
            plan,
            spent=self.planning.spent,
            seconds=plan.seconds or elapsed_s - self.started_s,
            attempts=(*plan.attempts, *self.attempts),
        )


class RoundHistory:
    """The rounds of one question that have ended, `earlier` those of a trace that it goes on from. The planner, the
    next round and the trace read it."""

    def __init__(self, pool: Pool, earlier: Sequence[RoundTrace] = ()) -> None:
        self._pool = pool
        self.rounds: list[RoundTrace] = []
        self.earlier_rounds: tuple[EarlierRound, ...] = ()
        """The rounds that were run, as a planner sees them."""
        self.answer: str | None = None
        self.answer_error: str | None = None
        """Why the answer is no result of the latest plan's last step. None if it is that step's result."""
        for round_ in earlier:
            if round_.workflow is None:
                self.add(round_)
            else:
                self.add_run(round_, round_.workflow, round_.spans)

    @property
    def round_context(self) -> RoundContext:
        """What the steps of the next round may read of these rounds."""
        return RoundContext(
            len(self.rounds),
            response=(self.earlier_rounds[-1].response or None) if self.earlier_rounds else None,
            steps_by_worker=Counter(worker for round_ in self.rounds for worker in round_.called_workers),
        )

    @property
    def is_over(self) -> bool:
        """Whether the latest round ends the question, although the budget may allow another."""
        if not self.rounds:
            return False
        last = self.rounds[-1]
        if not isinstance(last.plan.decision, Workflow):
            return True
        reply = last.spans[-1].reply
        # The caller runs its tools now, and then continues with the same worker.
        return reply is not None and bool(reply.tool_calls)

    def add(self, round_: RoundTrace) -> RoundTrace:
        """Add a round that was not run. If it accepts a step of an earlier round, that step's response becomes the
        answer."""
        if round_.error is not None:
            self.answer_error = f"There is no plan to run. {round_.error.message}"
        elif round_.plan.accepted_step is not None:
            round, step = round_.plan.accepted_step
            self.answer, self.answer_error = self.earlier_rounds[round].responses[step], None
            round_ = round_.model_copy(update={"response": self.answer})
        self.rounds.append(round_)
        return round_

    def add_run(self, round_: RoundTrace, workflow: Workflow, spans: tuple[Span, ...]) -> RoundTrace:
        """Add a round with the steps that were run. The round may have been cancelled."""
        latest = _answering_step(spans, self._pool)
        reply = None if latest is None else spans[latest].reply
        response, votes = (None, None) if reply is None else (reply.text, reply.votes)
        responses = tuple(span.response for span in spans)
        self.earlier_rounds = (*self.earlier_rounds, EarlierRound(workflow, response or "", votes, responses))
        self.answer = self.answer if response is None else response
        self.answer_error = _answer_error(spans, latest)
        if round_.error is not None:
            why = f"There is no plan to run. {round_.error.message}"
            went = f"The question went to {spans[0].worker!r} alone."
            self.answer_error = " ".join(filter(None, (why, went, self.answer_error)))
        round_ = round_.model_copy(update={"spans": spans, "response": response})
        self.rounds.append(round_)
        return round_

    def status(self, storage_error: str | None) -> tuple[TraceStatus, str | None]:
        """The status of a question that ended, and its error. `storage_error` is why storage stopped it."""
        error = storage_error or self.answer_error
        if self.answer is None:
            return "failed", error
        if error is None:
            return "ok", None
        if self.rounds[-1].response is None and storage_error is None:
            error += " The answer is that of an earlier round."
        return "degraded", error


def _answering_step(spans: Sequence[Span], pool: Pool) -> int | None:
    """The step whose response is a round's answer: the latest that succeeded and, if a tool's, has a result. If none
    has one, the latest that succeeded."""
    done = [span.position for span in spans if span.status == "done"]
    for position in reversed(done):
        span = spans[position]
        if is_result(span.response or "") or not pool.named(span.worker).is_tool:
            return position
    return done[-1] if done else None


def _answer_error(spans: tuple[Span, ...], latest: int | None) -> str | None:
    """Why the response of `latest`, the round's answer, is no result of its last step. None if it is one."""
    if latest is None:
        faults = " ".join(
            f"Step {span.position}: {span.error}" for span in spans if span.error and span.status != "skipped"
        )
        return f"No step succeeded. {faults}"
    last = spans[-1]
    reason = (last.response or "").partition("\n")[0]
    if latest == len(spans) - 1:
        return None if is_result(reason) else f"No step has a result. {reason}"
    if last.status == "done":
        return f"The last step's tool has no result ({reason}); the answer is that of step {latest}."
    return f"The last step did not succeed ({last.error}); step {latest} is the latest that did."
