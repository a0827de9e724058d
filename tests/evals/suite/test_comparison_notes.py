"""What a table says of planners that were chosen on training questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.graded_evaluations import column, graded
from podium.evals import Evaluation
from podium.evals.answer_files import AnswerFiles
from podium.evals.suite.comparisons import comparison_of
from suites import check


def test_a_planner_that_each_seed_chose_anew_is_named_for_each(tmp_path: Path) -> None:
    manifest = check(planner=[{"planner": "best-vote", "label": "vote"}])
    (table,) = manifest.tables
    seeds = [graded(planner, column(True)) for planner in ("committee:ada", "committee:ada+gus")]
    both = Evaluation(tuple(rollout for seed in seeds for rollout in seed.rollouts))
    notes = comparison_of(manifest, table, {"vote": both}, AnswerFiles(tmp_path)).notes
    assert "vote: committee:ada, committee:ada+gus, chosen on training questions." in notes


@pytest.mark.parametrize(
    ("samples", "planner_usd", "said"), [(15, 30.0, True), (15, 15.5, False), (14, 30.0, False)]
)
def test_a_vote_that_may_not_spend_the_same_dollars_says_so(
    tmp_path: Path, samples: int, planner_usd: float, said: bool
) -> None:
    manifest = check(planner=[{"planner": "random", "controls": ["self-consistency"]}])
    (table,) = manifest.tables
    evaluations = {
        "random": graded("random", column(True), usd=planner_usd),
        "random: self-consistency": graded(f"self-consistency:ada:{samples}", column(True), usd=15.0),
    }
    notes = comparison_of(manifest, table, evaluations, AnswerFiles(tmp_path)).notes
    assert any("limited to 15 answers" in note for note in notes) == said
