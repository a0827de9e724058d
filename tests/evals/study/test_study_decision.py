"""What a study recommends: a team where one helps, none where none does, and how sure it is."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import multinomial

from podium.evals.study.decision import StudyDecision, decide, simultaneous_intervals
from podium.evals.study.methods import (
    FittedMethod,
    MethodResult,
    StudyMethod,
    crossfit,
    folds_of,
    methods_for,
)
from podium.evals.study.result import Bounds
from podium.planners import Single
from podium.planners.answer_matrix import AnswerMatrix, Floats, select_questions
from simulated_answers import cheap_is_as_good, nothing_helps, votes_help


def without_routers(answers: AnswerMatrix) -> Iterator[StudyMethod]:
    return (method for method in methods_for(answers) if "router" not in method.name)


def decision(answers: AnswerMatrix) -> StudyDecision:
    return decide(crossfit(answers, without_routers(answers)))


def test_a_team_is_seldom_recommended_where_none_helps() -> None:
    found = [decision(nothing_helps(seed)) for seed in range(20)]
    # In 95 % of all studies no interval misses: of 20, more than 3 mistakes would be a chance of 1 in 60.
    better = [any(row.verdict == "better" for row in one.rows) for one in found]
    assert sum(better) <= 3
    assert all(one.recommended.is_team is team for one, team in zip(found, better, strict=True))


def test_chosen_method_scores_higher_on_its_own_questions_than_on_new() -> None:
    on_its_own, on_others = [], []
    for seed in range(20):
        answers = nothing_helps(seed, workers=6)
        method = next(method for method in methods_for(answers) if method.name == "cascade")
        chosen = method.choose(answers)
        assert chosen is not None
        on_its_own.append(chosen.figures(answers)[0].mean())
        (measured,) = crossfit(answers, [method])
        on_others.append(measured.score_Q.mean())
    assert np.mean(on_its_own) > 0.78
    assert np.mean(on_others) == pytest.approx(0.75, abs=0.02)


def test_a_vote_that_helps_is_found_with_its_gain() -> None:
    measured = crossfit(votes_help(0), without_routers(votes_help(0)))
    found = decide(measured)
    best, chosen, single = found.recommended, measured[found.recommended_index].chosen, measured[0].chosen
    assert best.label == "vote"
    assert chosen is not None
    assert chosen.planner.name == best.planner
    assert chosen.planner.name.startswith("committee:")
    # On other questions of the same pool, the chosen vote gains what the interval says.
    others = votes_help(1, questions=5000)
    assert single is not None
    gain = (chosen.figures(others)[0] - single.figures(others)[0]).mean()
    assert best.difference is not None
    assert best.difference.low < gain < best.difference.high


def test_a_cheaper_worker_as_good_is_recommended_though_nothing_is_better() -> None:
    found = decision(cheap_is_as_good(0))
    assert not any(row.verdict == "better" for row in found.rows)
    assert found.reference.label == "w0 alone"
    assert found.recommended.label == "w1 alone"
    assert found.recommended.verdict == "cheaper"
    assert [f.verdict for f in found.rows if f.label == "w2 alone"] == ["worse"]


def test_stated_number_of_extra_questions_decides_an_open_case() -> None:
    answers = votes_help(3, questions=60, right=0.6)
    methods = [method for method in methods_for(answers) if not method.is_team]
    one = crossfit(answers, methods)
    opened = next(f for f in decide(one).rows if f.verdict == "open")
    times = -(-(opened.questions + opened.more_questions) // opened.questions)
    many = [
        dataclasses.replace(m, score_Q=np.tile(m.score_Q, times), cost_Q=np.tile(m.cost_Q, times))
        for m in one
    ]
    again = next(f for f in decide(many).rows if f.label == opened.label)
    assert again.verdict != "open"
    fewer = max(1, times // 4)
    some = [
        dataclasses.replace(m, score_Q=np.tile(m.score_Q, fewer), cost_Q=np.tile(m.cost_Q, fewer))
        for m in one
    ]
    assert next(f for f in decide(some).rows if f.label == opened.label).verdict == "open"


def test_simultaneous_intervals_widen_with_the_number_of_methods() -> None:
    rng = np.random.default_rng(0)
    difference = rng.choice([-1.0, 0.0, 1.0], size=(400, 12), p=[0.2, 0.5, 0.3])
    (alone,), factor = simultaneous_intervals(difference[:, :1])
    assert alone is not None
    with_pseudo_pairs = difference[:, 0].var() * 400 + 4
    error = (with_pseudo_pairs / (400 * 399)) ** 0.5
    assert factor == pytest.approx(1.645, abs=0.12)
    assert alone.high - alone.mean == pytest.approx(factor * error)
    _, wider = simultaneous_intervals(difference)
    assert 2.4 < wider < 2.9  # Of twelve independent ones: the normal quantile at 0.95 ** (1 / 12) is 2.63.


@pytest.mark.parametrize("questions", [35, pytest.param(120, marks=pytest.mark.nightly)])
def test_each_end_of_an_interval_holds_where_differences_are_rare(questions: int) -> None:
    most = 10  # More wins or losses than this are too seldom to matter.
    ends = {}
    for wins, losses in itertools.combinations_with_replacement(range(most), 2):
        seen = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (questions - wins - losses))
        (interval,), _ = simultaneous_intervals(seen[:, None])
        assert interval is not None
        ends[wins, losses] = (interval.low, interval.high)
        ends[losses, wins] = (-interval.high, -interval.low)
    for expected, part in itertools.product([0.5, 1, 2, 3, 4], [0, 0.25, 1]):
        win, loss = expected / questions, part * expected / questions
        share = {
            (wins, losses): multinomial.pmf(
                [wins, losses, questions - wins - losses], questions, [win, loss, 1 - win - loss]
            )
            for wins, losses in ends
        }
        true = win - loss
        assert sum(share[seen] for seen, (low, _) in ends.items() if low <= true) >= 0.95
        assert sum(share[seen] for seen, (_, high) in ends.items() if high >= true) >= 0.95


def test_one_lost_question_of_35_does_not_show_that_a_vote_gains_nothing() -> None:
    single = np.tile([1.0, 1.0, 1.0, 1.0, 0.0], 7)
    vote = single.copy()
    vote[0] = 0.0
    found = decide(
        [
            MethodResult("single alone", single, np.ones(35), None, is_team=False),
            MethodResult("vote", vote, np.full(35, 4.0), None),
        ]
    ).rows[1]
    assert found.difference is not None
    assert found.difference.high > 0.029
    assert found.verdict == "open"
    assert found.more_questions > 35


def test_a_team_is_not_called_cheaper_if_a_cheaper_worker_may_be_as_good() -> None:
    right = np.tile([1.0, 1.0, 0.0, 0.0], 60)
    tied = np.roll(right, 1)
    tied[:8] = 0.0  # Half of these were right.

    def measured(name: str, score: Floats, price: float, *, is_team: bool = False) -> MethodResult:
        return MethodResult(name, score, np.full(240, price), None, is_team, is_cost_capped=is_team)

    dear, near = measured("dear alone", right, 10.0), measured("near alone", tied, 1.0)
    routed = right.copy()
    routed[:8], routed[8:38] = 0.0, 1.0
    router = measured("router at half the price", routed, 5.0, is_team=True)
    worse = measured("worse alone", np.zeros(240), 1.0)
    found = decide([dear, near, router])
    assert [f.verdict for f in found.rows] == ["reference", "open", "open"]
    assert found.recommended.label == "dear alone"
    assert found.rows[2].more_questions == found.rows[1].more_questions > 240
    assert decide([dear, worse, router]).recommended.label == "router at half the price"


def test_a_method_that_lacks_questions_is_compared_on_those_that_it_has() -> None:
    difference = np.array([[0.0, 1.0]] * 30 + [[0.0, np.nan]] * 70)
    difference[:5, 1] = 0.0
    _, partial = simultaneous_intervals(difference)[0]
    assert partial is not None
    assert partial.mean == pytest.approx(25 / 30)


def test_equal_accuracy_without_a_margin_stays_open() -> None:
    halves = np.tile([1.0, 0.0], 50)
    costs = np.ones(100)
    equal = decide(
        [
            MethodResult("best alone", halves, costs, None, False),
            MethodResult("vote", halves[::-1], costs, None),
        ],
        margin=0.0,
    ).rows[1]
    assert (equal.verdict, equal.more_questions) == ("open", 0)


def test_cross_fitting_never_scores_a_question_used_for_the_choice() -> None:
    answers = votes_help(0, questions=53)
    seen: list[set[str]] = []

    class Spy(FittedMethod):
        """Is right on the questions that it was chosen on."""

        def figures(self, answers: AnswerMatrix) -> tuple[Floats, Floats]:
            own = self.planner.worker.split()
            return np.array([float(text in own) for text in answers.texts]), np.zeros(len(answers.texts))

    def remember(training: AnswerMatrix) -> FittedMethod:
        seen.append(set(training.texts))
        return Spy(Single(" ".join(training.texts)))

    (spy,) = crossfit(answers, [StudyMethod("spy", remember)])
    assert spy.score_Q.tolist() == [0.0] * 53
    assert [len(own) for own in seen] == [53, *[53 - len(fold) for fold in folds_of(53, "0")]]


def test_few_questions_recommend_no_team() -> None:
    found = decide(crossfit(votes_help(0, questions=12), [*without_routers(votes_help(0, questions=12))]))
    assert found.recommended is found.reference


def test_repeats_tell_luck_from_skill() -> None:
    guessing = Bounds.of(nothing_helps(0, questions=400, samples=2))
    assert guessing.any_right.mean > 0.95
    assert guessing.again is not None
    assert guessing.again.mean == pytest.approx(guessing.best_of_repeated, abs=0.04)
    assert Bounds.of(nothing_helps(0)).again is None


def test_selected_questions_keep_their_answers_and_scores() -> None:
    answers = votes_help(0, questions=30)
    part = select_questions(answers, np.array([3, 9]))
    assert part.texts == ("3", "9")
    assert (part.score_QW == answers.score_QW[[3, 9]]).all()
    assert isinstance(crossfit(part, methods_for(part, teams=False))[0], MethodResult)


def test_the_cheapest_method_that_gains_nearly_as_much_is_recommended() -> None:
    rng = np.random.default_rng(0)
    right = (rng.random(400) < 0.5).astype(float)

    def method(name: str, gained: int, price: float) -> MethodResult:
        score = right.copy()
        score[np.flatnonzero(right == 0)[:gained]] = 1.0
        return MethodResult(name, score, np.full(400, price), None, is_team=name != "single")

    methods = [
        method("single", 0, 1.0),
        method("dear", 80, 9.0),
        method("fair", 76, 2.0),
        method("little", 40, 1.5),
    ]
    found = decide(methods)
    assert [f.verdict for f in found.rows[1:]] == ["better"] * 3
    assert found.recommended.label == "fair"
    assert decide(methods, margin=0.2).recommended.label == "little"
    assert decide(methods, margin=0.0).recommended.label == "dear"
