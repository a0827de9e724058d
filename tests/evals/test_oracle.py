"""The oracle row takes the best answer of any worker, in whatever order the workers stand."""

from __future__ import annotations

from itertools import permutations

from handmade_evaluations import rollout

from podium.evals import Evaluation
from podium.evals.suite.comparisons import oracle_of
from podium.rollout import Rollout
from podium.tasks.task import Grade

FAILED = Grade(0.0, failure="The judge did not answer.")


def test_an_answer_without_a_verdict_is_never_better_than_a_wrong_one() -> None:
    def answers(worker: int, *, failing: bool) -> Evaluation:
        rollouts: list[Rollout] = []
        for number in range(10):
            made = rollout(f"q/{number}", [worker], correct=not number)
            ungraded = failing and number > 0
            rollouts.append(made.model_copy(update={"grade": FAILED}) if ungraded else made)
        return Evaluation(tuple(rollouts))

    singles = {"a": answers(0, failing=True), "b": answers(1, failing=False)}
    for order in permutations(singles):
        oracle = oracle_of({name: singles[name] for name in order})
        assert oracle is not None
        assert oracle.accuracy.mean == 0.1
