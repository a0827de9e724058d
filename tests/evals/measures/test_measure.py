"""One value holds all measures, and None where an evaluation lacks what a measure needs."""

import pytest
from graded import column, graded

from podium.baselines import Committee, Single
from podium.errors import UsageError
from podium.evals import evaluate
from podium.evals.measures import SINGLES, Measures, measure
from podium.workers import Pool, VoteWorker


async def test_measures_of_real_evaluations_can_be_saved_and_read(tmp_path, specialists, tasks):
    pool = Pool([*specialists, VoteWorker()])
    planners = {"vote": Committee(specialists.names)} | {name: Single(name) for name in specialists.names}
    evaluations = {
        label: await evaluate(planner, tasks[:30], pool, repeats=2) for label, planner in planners.items()
    }
    found = measure(evaluations, families={"cheap": ["left", "right"]})
    found.save(tmp_path / "measures.json")
    assert Measures.load(tmp_path / "measures.json") == found
    assert [front.label for front in found.fronts] == [SINGLES, "cheap", "vote"]
    assert found.pool is not None
    assert found.pool.workers == specialists.names
    assert {one.label for one in found.ranking} == set(planners)
    vote, *singles = found.planners
    assert vote.difference is vote.adjusted_p is None
    assert all(one.p_value <= one.adjusted_p for one in singles)
    best = next(one for one in singles if one.label == found.pool.best)
    assert best.gaps is not None
    assert best.gaps.ahead_of_best is not None
    assert best.gaps.ahead_of_best.mean == 0.0
    # The best single worker lies on the front of single workers, and costs all of its own price.
    assert found.fronts[0].price_of_best_single is not None
    assert found.fronts[0].price_of_best_single.share == pytest.approx(1.0)
    assert best.singles_at_equal_usd == pytest.approx(best.accuracy.mean)


def test_what_is_missing_is_none():
    found = measure({"it": graded("made", column(True, False))})
    (planner,) = found.planners
    assert (found.pool, found.ranking, planner.gaps, planner.robustness) == (None, (), None, None)
    assert (planner.singles_at_equal_usd, found.fronts[0].area) == (None, None)
    ungraded = measure(
        {"it": graded("made", column(None, None)), "other": graded("made", column(True, None))}
    )
    assert ungraded.planners[0].accuracy is None
    assert (ungraded.fronts, ungraded.planners[1].p_value) == ((), None)


def test_answers_that_were_not_graded_are_left_out_of_pairs():
    first, second = graded("made", column(True, True, None)), graded("made", column(True, False, False))
    other = measure({"first": first, "second": second}).planners[1]
    assert other.difference is not None
    assert other.difference.mean == 0.5


def test_the_best_single_worker_may_be_chosen_elsewhere():
    evaluations = {
        "it": graded("made", column(True, True)),
        "a alone": graded("single:a", column(True, False)),
        "b alone": graded("single:b", column(False, False)),
    }
    found = measure(evaluations, best_single="b")
    assert found.pool is not None
    assert found.pool.best == "b"
    assert found.planners[0].gaps is not None
    assert found.planners[0].gaps.ahead_of_best is not None
    assert found.planners[0].gaps.ahead_of_best.mean == 1.0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"best_single": "c"}, "'c' is the label or name of no single worker"),
        ({"singles": {"c": "c alone"}}, "'c alone' is the label or name of no single worker"),
        ({"families": {"mine": ["it", "that"]}}, "A family names 'that', which was not evaluated"),
    ],
)
def test_unknown_names_are_refused(given, says):
    with pytest.raises(UsageError, match=says):
        measure({"it": graded("made", column(True))}, **given)


def test_evaluations_on_different_questions_are_refused():
    with pytest.raises(UsageError, match="different questions"):
        measure({"it": graded("made", column(True)), "other": graded("made", column(True, False))})
    with pytest.raises(UsageError, match="no evaluations"):
        measure({})
