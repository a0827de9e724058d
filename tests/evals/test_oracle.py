"""The oracle row takes the best answer of any worker, in whatever order the workers stand."""

from __future__ import annotations

from itertools import permutations, product

from graded_evaluations import column, graded
from podium.evals.comparison import ORACLE, Comparison, comparison_row
from podium.evals.comparison_table import table_notes
from podium.evals.suite.comparisons import oracle_of

VERDICTS = (True, False, None)


def test_oracle_is_at_least_as_accurate_as_every_worker() -> None:
    for first, second in product(product(VERDICTS, repeat=3), repeat=2):
        singles = {"a": graded("a", column(*first)), "b": graded("b", column(*second))}
        for order in permutations(singles):
            oracle = oracle_of({name: singles[name] for name in order})
            best = max((single.accuracy.mean for single in singles.values() if single.right), default=0.0)
            assert (oracle is None) == all(
                True not in pair and None in pair for pair in zip(first, second, strict=True)
            )
            assert oracle is None or oracle.accuracy.mean >= best


def test_borrowed_answers_of_the_oracle_are_not_counted_again() -> None:
    singles = {"a": graded("a", column(True, None)), "b": graded("b", column(False, None))}
    oracle = oracle_of(singles)
    assert oracle is not None
    rows = [comparison_row("single", name, of_row) for name, of_row in singles.items()]
    rows = [row.model_copy(update={"grading_usd": 1.0}) for row in rows]
    bound = comparison_row("oracle", ORACLE, oracle).model_copy(update={"grading_usd": 1.0})
    sampled = comparison_row("oracle", "best of 8 plans", singles["a"])
    made = Comparison(questions=2, seed="0", pool=("a", "b"), rows=(*rows, sampled, bound))
    notes = " ".join(table_notes(made))
    assert "3 answers could not be graded" in notes
    assert "$2.00" in notes
