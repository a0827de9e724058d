"""A comparison: the figures of the Conductor and the baselines on the same questions. Tables and reports show it.

`podium.evals.suite.comparisons` makes a comparison from the answers of a suite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from podium.evals.evaluation import Evaluation
from podium.evals.json_file import JsonFile
from podium.evals.stats import Interval, adjusted_p_values, paired_difference, permutation_test
from podium.types import FrozenModel

PlannerKind = Literal[
    "conductor", "untrained", "single", "self-consistency", "constant", "random", "committee", "cascade", "chosen",
    "bandit", "oracle", "control", "other",
]  # fmt: skip
"""The kinds of planners. "control" is another planner without one of its parts. "other" is a planner of no other
kind."""

RECORDED = (
    "Recorded responses, each given to the bare question: these figures are faithful for choosing, combining, voting "
    "and stopping, and for nothing else."
)
"""The sentence under every figure to which a recorded response contributed."""
CONDITIONED = (
    "Recorded responses, each given to just what its step shows: to the bare question, or to the same subtask and the "
    "same earlier answers. A step to which the recording has no response has failed."
)
"""The sentence under every figure to which responses to other answers contributed."""
_UNTIMED = "Times are not known."
ORACLE = "Oracle (a bound for one answer)"
"""The label of the row that is computed from the rows of single workers."""


def _known(value: Any) -> Any:
    """Read null as infinity. JSON has neither infinity nor NaN, so both are written as null."""
    return math.inf if value is None or (isinstance(value, float) and math.isnan(value)) else value


Figure = Annotated[float, BeforeValidator(_known)]
"""Seconds or dollars. They may be infinite, because a team file or a recording may say so."""


class MissingResponses(FrozenModel):
    """How many steps and plans of one planner a recording could not answer."""

    steps: int
    """Steps that failed, because the recording has no response to what the step shows."""
    plans: int
    of: int


class ComparisonRow(FrozenModel):
    """The figures of one planner over all questions, as `Evaluation` defines them. Costs are in dollars a question."""

    kind: PlannerKind
    label: str
    accuracy: Interval
    difference: Interval | None = None
    """The Conductor's accuracy minus this planner's, paired by question. None for the Conductor itself."""
    p_value: float | None = None
    """The p-value, for this row alone, that both planners are right equally often (`stats.permutation_test`). None if
    the row is not tested."""
    adjusted_p: float | None = None
    """The p-value adjusted by Holm for all tested rows of the comparison. None if the row is not tested."""
    steps: float
    calls: float
    tokens: float = 0.0
    cost_usd: Figure
    saved_usd: Figure = 0.0
    latency_s: Figure
    validity: float
    failures: int
    ungraded: int = 0
    grading_usd: Figure = 0.0
    beyond_recording: float = 0.0
    rules_out: str = ""
    """What explains the planner's accuracy if this row, a control, is as accurate."""
    unrecorded: MissingResponses | None = None
    """How many responses the recording lacks. None if it lacks none."""

    @property
    def cost_of_pass(self) -> float:
        """Dollars for each right answer (Erol et al. 2025, arXiv 2504.13359). Infinite if no answer was right."""
        return self.cost_usd / self.accuracy.mean if self.accuracy.mean > 0 else math.inf


class Comparison(JsonFile):
    """All that was measured on one set of questions."""

    description = "a comparison"

    questions: int
    seed: str
    pool: tuple[str, ...]
    recorded: bool = False
    conditioned: bool = False
    rows: tuple[ComparisonRow, ...]
    """The rows. If there is a Conductor, it comes first."""
    tasks: str = ""
    """Task set and split of the questions, such as mine/validation. Empty if not known."""
    max_steps: int | None = None
    """The most steps of a plan by a planner that chooses their number. None if it is not known."""
    rounds: int | None = None
    """The most plans for one question. None if it is not known."""
    notes: tuple[str, ...] = ()
    """Which questions were left out, and what the dollars do not include, in sentences."""
    reference: str = "Conductor"
    """The label of the planner that the others are compared with."""

    @property
    def subject(self) -> str:
        """What was measured, such as "22 held-out questions of mine/validation"."""
        return f"{self.questions} held-out questions{f' of {self.tasks}' if self.tasks else ''}"

    @property
    def oracle(self) -> ComparisonRow | None:
        """The row that is computed from the rows of single workers. None if there is none."""
        return next((row for row in self.rows if (row.kind, row.label) == ("oracle", ORACLE)), None)

    @property
    def answering(self) -> tuple[ComparisonRow, ...]:
        """The rows of planners that answered. The oracle borrows the answers of other rows."""
        return tuple(row for row in self.rows if row is not self.oracle)

    @property
    def is_timed(self) -> bool:
        return any(shown.latency_s for shown in self.rows)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences about the sources of the replies, for sources that readers must know about."""
        caveat = CONDITIONED if self.conditioned else RECORDED
        recorded = caveat if self.is_timed else f"{caveat} {_UNTIMED}"
        return (recorded,) * self.recorded


_MEASURED = (
    "accuracy", "steps", "calls", "tokens", "cost_usd", "saved_usd", "latency_s", "validity", "failures", "ungraded",
    "grading_usd", "beyond_recording",
)  # fmt: skip


def comparison_row(
    kind: PlannerKind,
    label: str,
    evaluation: Evaluation,
    *,
    against: Evaluation | None = None,
    rules_out: str = "",
) -> ComparisonRow:
    """The row of one evaluation.

    Args:
        against: the Conductor's evaluation, for the paired difference and its p-value.
    """

    difference = p_value = None
    if against is not None:
        if list(against.by_question) != list(evaluation.by_question):
            raise ValueError(f"{label} and the Conductor were evaluated on different questions")
        both = [task_id for task_id in against.right if task_id in evaluation.right]
        pair = [against.right[task_id] for task_id in both], [evaluation.right[task_id] for task_id in both]
        difference = paired_difference(*pair)
        p_value = permutation_test(*pair)
    missing_steps = evaluation.unrecorded
    unrecorded = MissingResponses(
        steps=sum(missing_steps), plans=sum(map(bool, missing_steps)), of=len(missing_steps)
    )
    return ComparisonRow(
        kind=kind,
        label=label,
        difference=difference,
        p_value=p_value,
        rules_out=rules_out,
        unrecorded=unrecorded if unrecorded.steps else None,
        **{figure: getattr(evaluation, figure) for figure in _MEASURED},
    )


def with_adjusted_p_values(rows: Sequence[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    """The rows with their p-values adjusted for the number of tested rows."""
    p_values = adjusted_p_values([shown.p_value for shown in rows])
    return tuple(shown.model_copy(update={"adjusted_p": p}) for shown, p in zip(rows, p_values, strict=True))
