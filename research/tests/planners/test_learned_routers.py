"""Routers that count dollars: what they learn, where a price changes their choice, and which votes they prefer."""

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from known_answers import known_answers
from podium.errors import ConfigError
from podium.planners import find_baseline, open_baseline
from podium.planners.answer_matrix import AnswerMatrix, MeasuredAnswer
from podium.planners.planner import BatchPlanner, PlanRequest
from podium.types import Profile, Question
from podium.workflow import Workflow
from podium_research.planners.learned_routers import PricedRouter, _RightCounts, independent_votes
from podium_research.planners.predictors import METHODS, Method, fit_calibrated, spread_of

NAMES = ("ada", "bob", "cy")
POOL = tuple(Profile(name=name) for name in (*NAMES, "vote"))


def texts_of(random: Random, count: int) -> tuple[list[str], np.ndarray]:
    """Sums and spellings, and which of them are sums."""
    sums = np.array([random.random() < 0.5 for _ in range(count)])
    return [
        f"How many apples are {random.randint(2, 99)} and {random.randint(2, 99)} apples together?"
        if is_sum
        else f"Spell the word number {random.randint(2, 99)} backwards, letter by letter, please."
        for is_sum in sums
    ], sums


def learned(name: str, scored: AnswerMatrix) -> PricedRouter:
    router = open_baseline(name, POOL, scored=scored)
    assert isinstance(router, PricedRouter)
    return router


@pytest.mark.parametrize(
    ("kind", "method"), [*(("router", method) for method in METHODS), ("committee-router", "ridge")]
)
async def test_each_method_learns_who_is_right_on_which_questions(method: str, kind: str) -> None:
    texts, sums = texts_of(Random("learned-routers/known"), 48)
    score_QW = np.stack([sums, ~sums], axis=1).astype(float)
    scored = known_answers(NAMES[:2], tuple(texts), score_QW, np.full((48, 2), 0.01))
    router = learned(f"{kind}:{method}:5", scored)
    unseen, are_sums = texts_of(Random("learned-routers/unseen"), 30)
    chosen = [committee.workers for committee in router.choose(unseen)]
    right = [
        workers == (("ada",) if is_sum else ("bob",))
        for workers, is_sum in zip(chosen, are_sums, strict=True)
    ]
    assert sum(right) >= 28
    plan = await router.plan(PlanRequest(Question(text=unseen[0]), POOL))
    assert isinstance(plan.decision, Workflow)
    assert POOL[plan.decision.steps[0].worker].name == chosen[0][0]


@pytest.mark.parametrize(
    "name", ["router:logistic:{}", "committee-router:ridge:{}", "threshold:ada>bob:ridge:0.{}"]
)
async def test_routing_questions_in_advance_gives_the_same_plans_as_one_by_one(name: str) -> None:
    texts, sums = texts_of(Random("learned-routers/ahead"), 60)
    score_QW, cost_QW = np.stack([sums, ~sums], axis=1).astype(float), np.tile([0.01, 0.03], (60, 1))
    unseen, _ = texts_of(Random("learned-routers/unseen"), 20)
    requests = [PlanRequest(Question(text=text), POOL) for text in unseen]
    scored = known_answers(NAMES[:2], tuple(texts), score_QW, cost_QW)
    alone = open_baseline(name.format(5), POOL, scored=scored)
    expected = [await alone.plan(request) for request in requests]
    ahead = open_baseline(name.format(5), POOL, scored=replace(scored))
    assert isinstance(ahead, BatchPlanner)
    ahead.prefetch(unseen)
    assert [await ahead.plan(request) for request in requests] == expected
    if isinstance(alone, PricedRouter):
        cheaper = learned(name.format(9), scored)
        assert cheaper.estimates is alone.estimates


async def test_threshold_routes_between_workers_whose_names_have_colons() -> None:
    names = ("qwen3:4b", "qwen3:8b")
    texts, sums = texts_of(Random("learned-routers/colons"), 20)
    scored = known_answers(
        names, tuple(texts), np.stack([sums, ~sums], axis=1).astype(float), np.ones((20, 2))
    )
    name = "threshold:qwen3:4b>qwen3:8b:ridge:1"
    found = find_baseline(name)
    assert found is not None
    assert found[0].needs(found[1]) == names
    pool = tuple(Profile(name=worker) for worker in names)
    planner = open_baseline(name, pool, scored=scored)
    plan = await planner.plan(PlanRequest(Question(text=texts[0]), pool))
    assert isinstance(plan.decision, Workflow)
    assert plan.decision.steps[0].worker == 1


@pytest.mark.parametrize("method", ["neighbours", "ridge"])
def test_router_picks_the_dear_worker_only_if_accuracy_is_worth_it(method: str) -> None:
    """ada is right 40 points more often and costs a cent more: worth it up to 40 for a dollar."""
    texts, _ = texts_of(Random("learned-routers/price"), 40)
    score_QW, cost_QW = np.tile([0.9, 0.5], (40, 1)), np.tile([0.02, 0.01], (40, 1))
    scored = known_answers(NAMES[:2], tuple(texts), score_QW, cost_QW)
    for per_usd, best in ((0, "ada"), (39.9, "ada"), (40.1, "bob"), (1000, "bob")):
        router = learned(f"router:{method}:{per_usd}", scored)
        assert {committee.workers for committee in router.choose(["Where?", texts[0]])} == {(best,)}


def test_committee_router_combines_workers_with_independent_errors() -> None:
    """Each is right on two questions of three, and two are always right: a vote gains a third for two more cents."""
    texts, _ = texts_of(Random("learned-routers/votes"), 45)
    score_QW = np.array([[float(q % 3 != w) for w in range(3)] for q in range(45)])
    scored = known_answers(NAMES, tuple(texts), score_QW, np.full((45, 3), 0.01))
    chosen = {
        per_usd: learned(f"committee-router:neighbours:{per_usd}", scored).choose(["Which is it?"])[0].workers
        for per_usd in (0, 100)
    }
    assert sorted(chosen[0]) == sorted(NAMES)
    assert len(chosen[100]) == 1


def test_committee_router_avoids_workers_with_the_same_errors() -> None:
    texts, _ = texts_of(Random("learned-routers/joint"), 45)
    errs = [MeasuredAnswer("wrong", 0.0, 0.01)]
    alone = [[MeasuredAnswer("right", 1.0, 0.01)] if q % 3 else errs for q in range(45)]
    together = [errs if q % 2 else [MeasuredAnswer("right", 1.0, 0.01)] for q in range(45)]
    scored = AnswerMatrix.of(texts, dict(zip(NAMES, (alone, together, together), strict=True)))
    assert len(learned("committee-router:neighbours:0", scored).choose(["Which?"])[0].workers) < 3


def test_right_answer_count_distribution_equals_full_enumeration() -> None:
    share_NW = np.random.default_rng(0).random((4, 3))
    found = _RightCounts(share_NW).of((0, 1, 2))
    counted = np.zeros((4, 4))
    for case in product((0, 1), repeat=3):
        counted[:, sum(case)] += np.where(case, share_NW, 1 - share_NW).prod(axis=1)
    assert found == pytest.approx(counted)


@pytest.mark.parametrize(("likeness", "both"), [(0.0, 0.49), (0.5, 0.595), (0.99, 0.6979)])
def test_likeness_of_two_samples_sets_the_probability_of_both_right(likeness: float, both: float) -> None:
    """Of a beta-binomial with mean p: P(both right) = p^2 + likeness p (1 - p)."""
    found = _RightCounts(np.array([[0.7]]), np.array([likeness])).of((0, 0))
    assert found[0, 2] == pytest.approx(both)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("alike", [False, True])
def test_expected_score_of_a_one_worker_vote_equals_its_measured_score(alike: bool) -> None:
    """Three answers to each question are known. They are right independently of each other, or all or none of them."""
    rng = np.random.default_rng(0)
    share_QW = np.where(rng.random((4000, 1)) < 0.5, 0.7, 0.4)
    right_QS = rng.random((4000, 1 if alike else 3)) < share_QW
    right_Q = np.broadcast_to(right_QS, (4000, 3)).sum(axis=1)
    score_Q = (right_Q >= 2).astype(float)
    votes = independent_votes(
        [(0,), (0, 0, 0)],
        lambda members: np.eye(len(members) + 1)[
            right_Q if len(members) == 3 else right_QS[:, 0].astype(int)
        ],
        np.stack([right_Q / 3, score_Q], axis=1),
        samples=3,
    )
    spread_W = spread_of(share_QW, right_Q[:, None] / 3)
    for share in (0.7, 0.4):
        expected = votes(np.array([[share]]), spread_W)[0]
        assert expected == pytest.approx([share, score_Q[share_QW[:, 0] == share].mean()], abs=0.03)


def test_calibration_fits_confident_predictions_to_coin_tosses() -> None:
    random = Random("learned-routers/calibration")
    texts, sums = texts_of(random, 400)
    share = np.where(sums, 0.8, 0.3)
    outcome = np.array([[float(random.random() < p)] for p in share])
    known, left = texts[:300], texts[300:]
    calibrated = fit_calibrated("neighbours", known, outcome[:300]).predict(left)
    assert np.abs(outcome[300:, 0] - share[300:]).mean() > 0.3
    assert np.abs(calibrated[:, 0] - share[300:]).mean() < 0.2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("router:rigde:1", "The planner 'router:rigde:1' has no method that is known; did you mean 'ridge'?"),
        (
            "committee-router:ridge:cheap",
            "The baseline 'committee-router:ridge:cheap' needs the accuracy that a dollar has to buy, a number from 0 "
            "on, such as committee-router:ridge:10.",
        ),
    ],
)
def test_a_name_that_cannot_be_used_gets_a_sentence(name: str, sentence: str) -> None:
    scored = known_answers(("ada",), ("One?",), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(ConfigError) as refused:
        open_baseline(name, POOL, scored=scored)
    assert str(refused.value) == sentence


@pytest.mark.parametrize("method", ["logistic", "boosting", "clusters", "routerdc"])
def test_router_that_cannot_learn_from_one_question_gets_a_sentence(method: Method) -> None:
    scored = known_answers(("ada", "bob"), ("One?",), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(ConfigError, match=f"{method} has too few training questions"):
        open_baseline(f"router:{method}:0", POOL, scored=scored)


def test_router_refuses_answers_of_workers_outside_the_pool() -> None:
    scored = known_answers(("zoe",), ("One?",), np.ones((1, 1)), np.ones((1, 1)))
    with pytest.raises(ConfigError, match="'router:ridge:0' learns from answers of the pool's workers"):
        open_baseline("router:ridge:0", POOL, scored=scored)
