"""The faults of a plan, of a round's last step and of a question. `question_run` puts them into the trace."""

from __future__ import annotations

from collections.abc import Sequence

from podium.executor.early_stopping import answering_steps
from podium.trace import RoundTrace, Span, TraceStatus
from podium.types import AnswerOptions
from podium.workers.pool import Pool
from podium.workers.tool import is_result
from podium.workers.traits import is_tool, traits_of
from podium.workflow import Acceptance, PlanError, Workflow, check

TOOL_ANSWERS = "tool_answers"
"""The kind of the fault that a tool would give an answer that only a model can give."""


def plan_fault(
    decision: Workflow | Acceptance | PlanError, *, workers: int, later_round: bool
) -> PlanError | None:
    """Why a decision cannot be run; None: it can. The parser has checked only the plans of a Conductor."""
    match decision:
        case Workflow(steps=steps):
            return check(decision, workers=workers, max_steps=max(1, len(steps)), later_round=later_round)
        case Acceptance() if not later_round:
            return PlanError("nothing_to_accept", "The first round has no answer to accept: expected steps.")
    return None


def options_fault(
    decision: Workflow | Acceptance | PlanError, pool: Pool, options: AnswerOptions
) -> PlanError | None:
    """Why a plan cannot give the answer in the form that its caller wants: a tool of ours would write it."""
    if not isinstance(decision, Workflow) or not (options.tools or options.response_format):
        return None
    workers = {position: pool[step.worker] for position, step in enumerate(decision.steps)}
    what = "call the tools of the request" if options.tools else "answer in the request's response_format"
    for position in sorted(answering_steps(decision, workers), reverse=True):
        worker = workers[position]
        if is_tool(worker) and (options.tools or traits_of(worker).is_certain is None):
            return PlanError(
                TOOL_ANSWERS,
                f"Step {position} may give the answer, and its worker {worker.profile.name!r} runs no model, so it "
                f"cannot {what}: expected a model there.",
            )
    return None


def answering_step(spans: Sequence[Span], pool: Pool) -> int | None:
    """The step whose response is a round's answer: the latest that is done. None: none is.

    A tool that says that it has no result gives way to an earlier step that has one.
    """
    done = [span.position for span in spans if span.status == "done"]
    for position in reversed(done):
        span = spans[position]
        if is_result(span.response or "") or not is_tool(pool.named(span.worker)):
            return position
    return done[-1] if done else None


def answer_concern(spans: tuple[Span, ...], latest: int | None) -> str | None:
    """Why a round's last step gave no answer; None: it did. `latest` is the step that gave it in its place."""
    if latest is None:
        faults = " ".join(
            f"Step {span.position}: {span.error}" for span in spans if span.error and span.status != "skipped"
        )
        return f"No step succeeded. {faults}"
    if latest == len(spans) - 1:
        return None
    last = spans[-1]
    if last.status == "done":
        reason = (last.response or "").partition("\n")[0]
        return f"The last step's tool has no result ({reason}); the answer is that of step {latest}."
    return f"The last step did not succeed ({last.error}); step {latest} is the latest that did."


def trace_status(
    answer: str | None, rounds: Sequence[RoundTrace], concern: str | None, trouble: str | None
) -> tuple[TraceStatus, str | None]:
    """The status of a question that ended, and its error in a sentence or two.

    Args:
        concern: why the answer is not that of the latest plan's last step; None: it is.
        trouble: why storage failed, if that stopped the question.
    """
    error = trouble or concern
    if answer is None:
        return "failed", error
    if error is None:
        return "ok", None
    if rounds[-1].response is None and trouble is None:
        error += " The answer is that of an earlier round."
    return "degraded", error
