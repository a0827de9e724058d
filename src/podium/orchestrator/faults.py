"""Why a plan cannot be run, and why a round's last step gave no answer. `orchestrator` puts both into the trace."""

from __future__ import annotations

from podium.trace import Span
from podium.workflow import Acceptance, PlanError, Workflow, check


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


def answer_concern(spans: tuple[Span, ...], latest: int | None) -> str | None:
    """Why a round's last step gave no answer; None: it did. `latest` is the latest step that succeeded."""
    if latest is None:
        faults = " ".join(
            f"Step {span.position}: {span.error}" for span in spans if span.error and span.status != "skipped"
        )
        return f"No step succeeded. {faults}"
    if latest == len(spans) - 1:
        return None
    return f"The last step did not succeed ({spans[-1].error}); step {latest} is the latest that did."
