"""Answers a question: the planner writes a plan, the executor runs it, and the planner may plan again, within a budget.

The result is a trace, in which bad plans, failed planners and failed workers are data. Cancellation, storage
errors and bugs are raised. Nothing here grades, stores or prints.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Self

from podium import __version__
from podium.calls import Dispatcher, Ledger
from podium.errors import StoreError, UsageError, WorkerError, flatten_group
from podium.executor import Execution, ExecutionSettings, QuestionContext, make_fence_mark
from podium.planner import PastRound, Planner, PlanRequest, responses_shown, rounds_of
from podium.planners.phrases import ANSWER_WHOLE_QUESTION
from podium.planners.voting import Single
from podium.team.events import Event, PlanReady, QuestionEnded, RoundEnded, TraceStoreError
from podium.team.faults import answer_concern, answering_step, options_fault, plan_fault, trace_status
from podium.trace import Plan, RoundTrace, Trace
from podium.types import Budget, Question, Receipt, Spent, Usage
from podium.workers.pool import Pool
from podium.workflow import Acceptance, PlanError, Step, Workflow

_PYTHON = platform.python_version()
_ROUNDING_USD = 1e-9
"""Sums of the same dollars in another order differ by less."""


@dataclass(frozen=True, eq=False)
class Runner:
    """Answers questions, any number at a time. `dataclasses.replace` makes a runner that differs in some parts."""

    planner: Planner
    """Writes the plans."""
    pool: Pool
    """The workers that plans may use. The caller closes it."""
    _: KW_ONLY
    budget: Budget = Budget()
    """Limits for each question."""
    max_steps: int = 5
    """The most steps that the planner may use; the budget limits calls."""
    settings: ExecutionSettings = field(default_factory=ExecutionSettings)
    """How workflows are run."""
    dispatcher: Dispatcher = field(default_factory=Dispatcher)
    """Shared by all runners over the same workers. Its spend limits are charged for these questions."""
    plan_fallback: str | None = None
    """The worker that answers a question when planning fails in the first round. None, or a name that the pool lacks:
    such a question fails, which is what training and evaluation need."""

    @classmethod
    def alone(cls, worker: str, pool: Pool, dispatcher: Dispatcher) -> Self:
        """One worker of `pool` that answers each question alone, also without its fallback, which is another worker."""
        return cls(Single(worker), pool.subset([pool.names.index(worker)]), dispatcher=dispatcher)

    @property
    def versions(self) -> dict[str, str]:
        """What its traces say of the programs that made them."""
        return {"podium": __version__, "python": _PYTHON}

    async def answer(
        self,
        question: Question,
        *,
        seed: str = "0",
        sample: int = 0,
        trace_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        streams: bool = False,
    ) -> Trace:
        """Answer `question`; what fails on the way is in the trace, not raised.

        Args:
            question: its text must not be blank.
            seed: seeds all randomness. Give users' questions a random seed: it also makes the marks that fence workers'
                texts, which must not be predictable.
            sample: the number of this answer among independent answers to the question; a response cache keeps the
                answers of each number apart.
            trace_id: 32 hexadecimal digits; None: a new id.
            on_event: called with each event. Must be quick.
            streams: whether `StepText` events carry the answer while it is written, by workers that stream. Only the
                last round that the budget allows is streamed, since after any other the planner may plan again.

        Raises:
            UsageError: the question is empty.
            asyncio.CancelledError: the caller cancelled it; every call in flight was cancelled.
            TraceStoreError: a spend limit or the response cache cannot be used, so no further call was made. Its
                `trace`, which `on_event` was sent too, has what was answered and paid until then.
        """
        context = replace(self._context(question, seed), sample=sample, streams=streams, observe=on_event)
        run = _QuestionRun(self, context, on_event, trace_id)
        with run.traced():
            for number in range(self.budget.rounds):
                if run.budget_ends:
                    break
                round_ = run.begin_round(number, await run.plan_round(number))
                if round_.workflow is None:
                    break
                with run.recorded(number, round_, round_.workflow) as execution:
                    await execution.run()
                if run.planner_ends:
                    break
        return run.trace

    async def dry_run(self, question: Question, *, seed: str = "0", trace_id: str | None = None) -> Trace:
        """Write the first plan for `question` and run nothing: a trace with the status "planned", or "failed".

        Raises:
            UsageError, asyncio.CancelledError, TraceStoreError: as `answer`.
        """
        run = _QuestionRun(self, self._context(question, seed), None, trace_id)
        with run.traced():
            run.only_planned(await run.plan_round(0))
        return run.trace

    async def write_plan(
        self, question: Question, *, seed: str = "0", receipt: Receipt | None = None
    ) -> Plan:
        """Write the first plan for `question`, run nothing, and make no trace.

        Args:
            receipt: gets what the plan cost, also if there is none.

        Raises:
            UsageError: the question is empty.
            StoreError: a spend limit cannot be used.
            WorkerError: the planner's model did not answer, or the budget refuses the plan (kind "budget").
        """
        context = self._context(question, seed)
        with context.ledger.receipt(receipt):
            return await _QuestionRun(self, context, None, None).plan_round(0, strict=True)

    def _context(self, question: Question, seed: str) -> QuestionContext:
        if not question.text.strip():
            raise UsageError("The question is empty: write what you want answered.")
        now, seconds = asyncio.get_running_loop().time(), self.budget.seconds
        fence_mark = make_fence_mark(seed, question)
        return QuestionContext(
            question=question,
            pool=self.pool,
            seed=seed,
            fence_mark=fence_mark,
            queue_key=fence_mark,
            ledger=Ledger(
                self.budget, None if seconds is None else now + seconds, self.dispatcher.spend_limits
            ),
            dispatcher=self.dispatcher,
            settings=self.settings,
            started=now,
        )


class _QuestionRun:
    """One question while it is answered: its rounds so far, and in the end its trace."""

    def __init__(
        self,
        runner: Runner,
        context: QuestionContext,
        on_event: Callable[[Event], None] | None,
        trace_id: str | None,
    ) -> None:
        self._runner = runner
        self._question_context = context
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
        """What `traced` made."""

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
    def budget_ends(self) -> bool:
        """Whether the budget allows no further round."""
        # Planners of several rounds may still choose an answer, which costs nothing.
        one_round = rounds_of(self._runner.planner) == 1
        return bool(self._rounds) and self._question_context.ledger.exhausted and one_round

    @property
    def planner_ends(self) -> bool:
        """Whether the planner gets no further round, although the latest one was run."""
        last = self._rounds[-1]
        reply = last.spans[-1].reply
        # After calls of its tools the caller continues with the same worker.
        return last.fallback is not None or (reply is not None and bool(reply.tool_calls))

    def begin_round(self, number: int, plan: Plan) -> RoundTrace:
        """The round of a plan, before it is run. One that has no workflow is recorded, and ends the question."""
        round_ = RoundTrace(plan=plan, fallback=self._fallback_workflow(plan.decision))
        self._emit(PlanReady(number, round_))
        if round_.workflow is None:
            self._end_without_workflow(number, round_)
        return round_

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
        names, name = self._question_context.pool.names, self._runner.plan_fallback
        if not isinstance(decision, PlanError) or decision.kind == "time_is_up":
            return None
        if self._past_rounds or name not in names:
            return None
        return Workflow((Step(names.index(name), ANSWER_WHOLE_QUESTION),))

    async def plan_round(self, number: int, *, strict: bool = False) -> Plan:
        """The plan of round `number`. What it took is counted in the ledger, also what the planner did not count there.

        If planning fails or the plan cannot run, its decision is a `PlanError`.

        Raises:
            WorkerError: `strict`, and the planner's model did not answer, or the budget refuses the plan.
        """
        runner, context = self._runner, self._question_context
        started, limit = context.elapsed(), asyncio.timeout_at(context.ledger.deadline)
        try:
            with context.ledger.receipt() as receipt:
                async with limit:
                    plan = await runner.planner.plan(self._request(number))
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
            plan = _no_plan(kind, f"{runner.planner.name}: {error}", receipt)
        except asyncio.CancelledError:
            if receipt.spent != Spent():
                lost = _no_plan("cancelled", "The question was cancelled.", receipt)
                self._close(number, RoundTrace(plan=replace(lost, seconds=context.elapsed() - started)))
            raise
        else:
            decision, later = plan.decision, number > 0
            fault = plan_fault(decision, workers=len(context.pool), later_round=later) or options_fault(
                decision, context.pool, context.question.options
            )
            plan = plan if fault is None else replace(plan, decision=fault)
        return plan if plan.seconds else replace(plan, seconds=context.elapsed() - started)

    def _request(self, number: int) -> PlanRequest:
        context = self._question_context
        return PlanRequest(
            question=context.question,
            pool=context.profiles,
            past_rounds=self._past_rounds,
            max_steps=self._runner.max_steps,
            rounds=self._runner.budget.rounds - number,
            seed=f"{context.seed}/{number}/plan",
            ledger=context.ledger,
        )

    @contextmanager
    def recorded(self, number: int, round_: RoundTrace, workflow: Workflow) -> Iterator[Execution]:
        """The execution of one round, which is recorded when the block ends."""
        earlier_calls = Counter(worker for round_ in self._rounds for worker in round_.called_workers)
        execution = Execution(
            self._question_context,
            workflow,
            round=number,
            previous=(self._past_rounds[-1].response or None) if self._past_rounds else None,
            shown=responses_shown(round_.plan, self._past_rounds),
            earlier_calls=earlier_calls,
            max_tokens=() if round_.error is not None else round_.plan.max_tokens,
        )
        try:
            yield execution
        finally:  # Also after cancellation: the trace has the answers so far.
            spans = execution.spans
            latest = answering_step(spans, self._runner.pool)
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
        runner, question_context = self._runner, self._question_context
        status, error = trace_status(self._answer, self._rounds, self._concern, trouble)
        if cancelled:
            status, error = "cancelled", "The question was cancelled."
        elif self._only_planned:
            status, error = "planned", "The plan was not run."
        trace = Trace(
            id=self._trace_id,
            question=question_context.question,
            pool=question_context.profiles,
            planner=runner.planner.name,
            seed=question_context.seed,
            budget=runner.budget,
            max_steps=runner.max_steps,
            context=runner.settings.context,
            early_stop=runner.settings.early_stop,
            rounds=tuple(self._rounds),
            answer=self._answer,
            status=status,
            error=error,
            started_at=self._began,
            seconds=question_context.elapsed(),
            versions=runner.versions,
        )
        self._emit(QuestionEnded(trace))
        return trace


def _no_plan(kind: str, why: str, receipt: Receipt) -> Plan:
    """What stands for the plan of a planner that failed, which has taken what the receipt says."""
    return Plan("", PlanError(kind, why), receipt.spent)
