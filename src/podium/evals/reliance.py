"""How far a planner's figures rest on what a recording cannot show.

A recorded response was given to the bare question. A step that rewrites the subtask, or that lets the recorded model
see others' work, would have got another response from the live model; the replayed one is the same.
"""

from __future__ import annotations

import re

from podium.baselines.phrases import WHOLE
from podium.evals.evaluation import Evaluation

_NUMBER = re.compile(r"^\d\. ")
"""A small policy numbers its subtasks; that changes nothing in what is asked."""


def beyond_recording(evaluation: Evaluation) -> float:
    """The share of recorded responses that stand for such a step; 0 without any."""
    recorded = beyond = 0
    for rollout in evaluation.rollouts:
        bare = (WHOLE, rollout.trace.question.text.strip())
        for number, round_ in enumerate(rollout.trace.rounds):
            for span in round_.spans:
                if span.recorded is not None and round_.workflow is not None:
                    recorded += 1
                    access = round_.workflow.steps[span.position].access
                    shown = bool(span.reads) or (number > 0 and access.sees_previous)
                    beyond += shown or _NUMBER.sub("", span.subtask).strip() not in bare
    return beyond / recorded if recorded else 0.0
