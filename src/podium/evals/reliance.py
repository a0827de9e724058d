"""How far a planner's figures rest on what a recording cannot show.

A recorded response was given to the bare question. A step that rewrites the subtask, or that lets the recorded model
see others' work, would have got another response from the live model; the replayed one is the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.baselines.phrases import asks_whole
from podium.evals.evaluation import Evaluation
from podium.trace import Trace


def beyond_recording(evaluation: Evaluation) -> float:
    """The share of recorded responses that stand for such a step; 0 without any."""
    found = [beyond for rollout in evaluation.rollouts for beyond in _beyond(rollout.trace)]
    return sum(found) / len(found) if found else 0.0


def _beyond(trace: Trace) -> Iterator[bool]:
    """Of each recorded response; those within a team are beyond where the team's own step is."""
    for number, round_ in enumerate(trace.rounds):
        for span in round_.spans:
            if round_.workflow is None or (span.recorded is None and span.nested is None):
                continue
            access = round_.workflow.steps[span.position].access
            shown = bool(span.reads) or (number > 0 and access.sees_previous)
            beyond = shown or not asks_whole(span.subtask, trace.question.text)
            if span.recorded is not None:
                yield beyond
            if span.nested is not None:
                yield from (beyond or inner for inner in _beyond(span.nested))
