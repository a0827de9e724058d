"""`QuestionRun`: one question while it is answered: its plans, its rounds so far, and in the end its trace.

`Runner` says in which order what is called. What fails on the way becomes data here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex

from podium.errors import StoreError, WorkerError, flatten_group
from podium.executor import Execution, QuestionContext
from podium.planner import PastRound, Planner, PlanRequest, responses_shown, rounds_of, streams_steps
from podium.team.events import Event, HeldEvents, PlanReady, QuestionEnded, RoundEnded, TraceStoreError
from podium.team.faults import answer_concern, answering_step, options_fault, plan_fault, trace_status
from podium.trace import Plan, RoundTrace, Trace
from podium.types import ANSWER_WHOLE_QUESTION, DEFAULT_OPTIONS, Receipt, Spent, Usage
from podium.workers.traits import traits_of
from podium.workflow import Acceptance, PlanError, Step, Workflow

_ROUNDING_USD = 1e-9
"""Sums of the same dollars in another order differ by less."""


@dataclass(frozen=True, slots=True)
class OverlappedRound:
    """The execution of a round whose plan is still being written, and the task that runs it."""

    execution: Execution
    ended: asyncio.Task[None]
    events: HeldEvents


class QuestionRun:
    """One question while it is answered.

    Args:
        planner: writes the plans.
        max_steps, overlap, tells_must_load, plan_fallback: as `Runner`'s.
        versions: as `Trace.versions`.
        on_event: called with each event.
        trace_id: None: a new one.
    """

    def __init__(
        self,
        planner: Planner,
        context: QuestionContext,
        *,
        max_steps: int,
        overlap: bool,
        tells_must_load: bool,
        plan_fallback: str | None,
        versions: Mapping[str, str],
        on_event: Callable[[Event], None] | None,
        trace_id: str | None,
    ) -> None:
        self._planner = planner
        self._question_context = context
        self._max_steps = max_steps
        self._overlap = overlap
        self._tells_must_load = tells_must_load
        self._plan_fallback = plan_fallback
        self._versions = versions
        self._emit = on_event or (lambda event: None)
        self._trace_id = trace_id or token_hex(16)
        self._began = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._rounds: list[RoundTrace] = []
        self._past_rounds: tuple[PastRound, ...] = ()
        self._answer: str | None = None
        self._concern: str | None = None
        """Why the answer is not that of the latest plan's last step; None: it is."""
        self._only_planned = False
        self.trace: Trace
        """The trace that `traced` made."""

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Make the trace of what the block does, whatever the block raises."""
        try:
            yield
        except asyncio.CancelledError:
            self.end(cancelled=True)
            raise
        except StoreError as failure:
            raise TraceStoreError(failure, self.end(trouble=str(failure))) from failure
        except BaseExceptionGroup as errors:
            trouble, others = errors.split(StoreError)
            if trouble is None or others is not None:
                raise
            first = next(flatten_group(trouble))
            raise TraceStoreError(first, self.end(trouble=str(first))) from None
        self.trace = self.end()

    @property
    def out_of_budget(self) -> bool:
        """Whether the budget allows no further round."""
        # Planners of several rounds may still choose an answer, which costs nothing.
        one_round = rounds_of(self._planner) == 1
        return bool(self._rounds) and self._question_context.ledger.exhausted and one_round

    @property
    def is_over(self) -> bool:
        """Whether the planner gets no further round, although the latest one was run."""
        last = self._rounds[-1]
        reply = last.spans[-1].reply
        # After calls of its tools the caller continues with the same worker.
        return last.fallback is not None or (reply is not None and bool(reply.tool_calls))

    @asynccontextmanager
    async def overlapped(self, number: int) -> AsyncIterator[OverlappedRound | None]:
        """An execution that runs the steps of the round's plan while it is being written; None: they wait for it.

        They wait where how a step is asked depends on the whole plan: votes that stop early choose who is called, and
        the caller's options go to all steps that a vote copies the answer from.
        """
        context = self._question_context
        if not (self._overlap and streams_steps(self._planner)) or context.settings.early_stop:
            yield None
            return
        votes = any(traits_of(worker).is_certain is not None for worker in context.pool)
        if votes and context.question.options != DEFAULT_OPTIONS:
            yield None
            return
        events = HeldEvents(context.observe)
        execution = Execution(
            replace(context, observe=events),
            round=number,
            previous=self._previous_response,
            earlier_calls=self._earlier_calls,
        )
        async with asyncio.TaskGroup() as group:
            yield OverlappedRound(execution, group.create_task(execution.run()), events)

    async def begin_round(self, number: int, plan: Plan, overlapped: OverlappedRound | None) -> RoundTrace:
        """The round of a plan, before the rest of it is run. One that has no workflow is recorded, and ends the
        question."""
        round_ = RoundTrace(plan=plan, fallback=self._fallback_workflow(plan.decision))
        if overlapped is not None:
            round_ = await self._completed(number, round_, overlapped.execution)
        self._emit(PlanReady(number, round_))
        if overlapped is not None:
            overlapped.events.release()
        if round_.workflow is None:
            self._end_without_workflow(number, round_)
        return round_

    async def _completed(self, number: int, round_: RoundTrace, execution: Execution) -> RoundTrace:
        """The round once what was started of its plan, and is not needed, has ended."""
        try:
            await execution.complete(round_.workflow, _max_tokens(round_))
        except asyncio.CancelledError:
            await execution.complete(None)
            self._close(number, round_.model_copy(update={"abandoned": execution.abandoned}))
            raise
        return round_.model_copy(update={"abandoned": execution.abandoned})

    def only_planned(self, plan: Plan) -> None:
        """Record the plan of the first round, which is not run."""
        if isinstance(plan.decision, PlanError):
            self._concern = f"There is no plan. {plan.decision.message}"
        else:
            self._only_planned = True
        self._close(0, RoundTrace(plan=plan))

    def _end_without_workflow(self, number: int, round_: RoundTrace) -> None:
        """End with the answer so far, or with the response of the step that an acceptance names."""
        if round_.error is not None:
            self._concern = f"There is no plan to run. {round_.error.message}"
        elif round_.plan.accepted_step is not None:
            round, step = round_.plan.accepted_step
            self._answer = self._past_rounds[round].responses[step]
            self._concern = None
            round_ = round_.model_copy(update={"response": self._answer})
        self._close(number, round_)

    def _fallback_workflow(self, decision: Workflow | Acceptance | PlanError) -> Workflow | None:
        """A workflow that sends the whole question to the fallback worker; None: there is none, or no need for it."""
        names, name = self._question_context.pool.names, self._plan_fallback
        if not isinstance(decision, PlanError) or decision.kind == "time_is_up":
            return None
        if self._past_rounds or name not in names:
            return None
        return Workflow((Step(names.index(name), ANSWER_WHOLE_QUESTION),))

    async def plan_round(
        self, number: int, *, strict: bool = False, overlapped: OverlappedRound | None = None
    ) -> Plan:
        """The plan of round `number`. What it took is counted in the ledger, also what the planner did not count there.

        If planning fails or the plan cannot run, its decision is a `PlanError`.

        Raises:
            WorkerError: `strict`, and the planner's model did not answer, or the budget refuses the plan.
        """
        context = self._question_context
        started, limit = context.elapsed(), asyncio.timeout_at(context.ledger.deadline)
        try:
            with context.ledger.receipt() as receipt:
                async with limit:
                    plan = await self._planner.plan(self._request(number, overlapped))
                uncounted_usd = plan.spent.cost_usd - receipt.spent.cost_usd
                if uncounted_usd > _ROUNDING_USD:
                    # A planner of another package may call a model by itself; then its cost is known only now.
                    usage = Usage() if receipt.spent.usage.tokens else plan.spent.usage
                    context.ledger.record(Spent(usage, uncounted_usd))
        except TimeoutError:
            if not limit.expired():
                raise
            plan = _no_plan("time_is_up", context.ledger.time_is_up, receipt)
        except WorkerError as error:
            if strict:
                raise
            kind = "budget_refused" if error.kind == "budget" else "planner_failed"
            plan = _no_plan(kind, f"{self._planner.name}: {error}", receipt)
        except asyncio.CancelledError:
            if overlapped is not None:
                with suppress(asyncio.CancelledError):  # Cancelled twice; it is raised below.
                    await overlapped.execution.complete(None)
            abandoned = () if overlapped is None else overlapped.execution.abandoned
            if receipt.spent != Spent() or abandoned:
                lost = _no_plan("cancelled", "The question was cancelled.", receipt)
                lost = replace(lost, seconds=context.elapsed() - started)
                self._close(number, RoundTrace(plan=lost, abandoned=abandoned))
            raise
        else:
            decision, later = plan.decision, number > 0
            fault = plan_fault(decision, workers=len(context.pool), later_round=later) or options_fault(
                decision, context.pool, context.question.options
            )
            plan = plan if fault is None else replace(plan, decision=fault)
        return plan if plan.seconds else replace(plan, seconds=context.elapsed() - started)

    def _request(self, number: int, overlapped: OverlappedRound | None) -> PlanRequest:
        context = self._question_context
        return PlanRequest(
            question=context.question,
            pool=context.profiles,
            past_rounds=self._past_rounds,
            max_steps=self._max_steps,
            rounds=context.ledger.budget.rounds - number,
            seed=f"{context.seed}/{number}/plan",
            must_load=context.dispatcher.must_load(context.pool) if self._tells_must_load else (),
            ledger=context.ledger,
            on_steps=None if overlapped is None else overlapped.execution.extend,
        )

    @property
    def _previous_response(self) -> str | None:
        return (self._past_rounds[-1].response or None) if self._past_rounds else None

    @property
    def _earlier_calls(self) -> Counter[int]:
        """How many steps each worker had in the rounds so far."""
        return Counter(worker for round_ in self._rounds for worker in round_.called_workers)

    @contextmanager
    def recorded(
        self, number: int, round_: RoundTrace, workflow: Workflow, overlapped: OverlappedRound | None
    ) -> Iterator[Execution]:
        """The execution of one round, which is recorded when the block ends."""
        execution = (
            Execution(
                self._question_context,
                workflow,
                round=number,
                previous=self._previous_response,
                shown=responses_shown(round_.plan, self._past_rounds),
                earlier_calls=self._earlier_calls,
                max_tokens=_max_tokens(round_),
            )
            if overlapped is None
            else overlapped.execution
        )
        try:
            yield execution
        finally:  # Also after cancellation: the trace has the answers so far.
            spans = execution.spans
            latest = answering_step(spans, self._question_context.pool)
            reply = None if latest is None else spans[latest].reply
            response, votes = (None, None) if reply is None else (reply.text, reply.votes)
            responses = tuple(span.response for span in spans)
            self._past_rounds = (*self._past_rounds, PastRound(workflow, response or "", votes, responses))
            self._answer = self._answer if response is None else response
            self._concern = answer_concern(spans, latest)
            if round_.error is not None:
                why = f"There is no plan to run. {round_.error.message}"
                went = f"The question went to {spans[0].worker!r} alone."
                self._concern = " ".join(filter(None, (why, went, self._concern)))
            self._close(number, round_.model_copy(update={"spans": spans, "response": response}))

    def _close(self, number: int, trace: RoundTrace) -> None:
        self._rounds.append(trace)
        self._emit(RoundEnded(number, trace))

    def end(self, *, cancelled: bool = False, trouble: str | None = None) -> Trace:
        """Make the trace of the question as far as it came.

        Args:
            trouble: why storage failed, if that stopped the question.
        """
        question_context = self._question_context
        status, error = trace_status(self._answer, self._rounds, self._concern, trouble)
        if cancelled:
            status, error = "cancelled", "The question was cancelled."
        elif self._only_planned:
            status, error = "planned", "The plan was not run."
        trace = Trace(
            id=self._trace_id,
            question=question_context.question,
            pool=question_context.profiles,
            planner=self._planner.name,
            seed=question_context.seed,
            budget=question_context.ledger.budget,
            max_steps=self._max_steps,
            context=question_context.settings.style,
            early_stop=question_context.settings.early_stop,
            rounds=tuple(self._rounds),
            answer=self._answer,
            status=status,
            error=error,
            started_at=self._began,
            seconds=question_context.elapsed(),
            versions=dict(self._versions),
        )
        self._emit(QuestionEnded(trace))
        return trace


def _max_tokens(round_: RoundTrace) -> tuple[int | None, ...]:
    """The plan's limits of output tokens, which do not hold for a worker that takes the question in its place."""
    return () if round_.error is not None else round_.plan.max_tokens


def _no_plan(kind: str, why: str, receipt: Receipt) -> Plan:
    """An error in place of the plan of a planner that failed, with what the planner spent."""
    return Plan("", PlanError(kind, why), receipt.spent)
