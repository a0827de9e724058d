"""Checks whether a plan can be run and can answer as the caller wants, and chooses what runs where one cannot."""

from __future__ import annotations

from podium.executor.early_stopping import answering_steps
from podium.types import ANSWER_WHOLE_QUESTION, AnswerOptions
from podium.workers.pool import Pool
from podium.workflow import Acceptance, PlanError, PlanRules, Step, Workflow, check

TOOL_ANSWERS = "tool_answers"
"""The kind of the error of a plan in which a tool would give an answer that only a model can give."""


def check_plan(
    decision: Workflow | Acceptance | PlanError, pool: Pool, options: AnswerOptions, *, later_round: bool
) -> PlanError | None:
    """Why a decision cannot be run, or cannot give the answer as its caller wants. None if it can. Plans of baselines
    are checked here for the first time."""
    match decision:
        case Workflow(steps=steps):
            rules = PlanRules(workers=len(pool), max_steps=max(1, len(steps)), later_round=later_round)
            return check(decision, rules) or _check_answer_options(decision, pool, options)
        case Acceptance() if not later_round:
            return PlanError("nothing_to_accept", "The first round has no answer to accept: expected steps.")
    return None


def _check_answer_options(workflow: Workflow, pool: Pool, options: AnswerOptions) -> PlanError | None:
    """Why a tool of the pool would write the answer, in a form that only a model can give. None if none would."""
    if not (options.tools or options.response_format):
        return None
    what = "call the tools of the request" if options.tools else "answer in the request's response_format"
    for position in sorted(answering_steps(workflow, pool), reverse=True):
        worker = pool[workflow.steps[position].worker]
        if worker.is_tool and (options.tools or worker.traits.stopping_rule is None):
            return PlanError(
                TOOL_ANSWERS,
                f"Step {position} may give the answer, and its worker {worker.profile.name!r} runs no model, so it "
                f"cannot {what}: expected a model there.",
            )
    return None


def fallback_workflow(
    decision: Workflow | Acceptance | PlanError, pool: Pool, name: str | None
) -> Workflow | None:
    """A workflow that sends the whole question to this worker. None if the pool lacks it, the decision is no error, or
    the time is up."""
    if not isinstance(decision, PlanError) or decision.kind == "time_is_up" or name not in pool.names:
        return None
    return Workflow((Step(pool.names.index(name), ANSWER_WHOLE_QUESTION),))
