"""Recorded answers as numbers: what they say of a plan is what the executor and the vote tool really give."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest

from podium.evals.plan_selection import best_cascade, best_fixed_plan, best_vote
from podium.evals.rating import measurable_workers, read_answers
from podium.executor import ExecutionSettings
from podium.planners import Cascade, Committee
from podium.planners.answer_matrix import AnswerMatrix, committee_cost
from podium.planners.planner import Planner
from podium.recordings import RecordedQuestion, RecordedResponse, Recording
from podium.rollout import Rollout, run_rollout
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Budget
from podium.workers import Pool
from podium.workers.calculator import CalculatorWorker
from recorded_world import TOKENS, pool_of, random_rows, replayed, tasks_of, world, write_recording

WORKERS = ("ada", "bob", "cy", "dan")
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)


async def rolled(planner: Planner, pool: Pool, task: Task) -> Rollout:
    return await run_rollout(Runner(planner, pool, budget=Budget(rounds=2)), task, seed="0")


async def run(planner: Planner, pool: Pool, tasks: list[Task]) -> list[float]:
    """Whether each question was answered rightly when the plan was really run."""
    return [float((await rolled(planner, pool, task)).correct) for task in tasks]


async def answers_of(recording: Recording) -> AnswerMatrix:
    return await read_answers(tasks_of(recording, "train"), replayed(recording))


def random_recording(
    path: Path, seed: str, samples: tuple[int, ...] = (2,) * 4, questions: int = 10
) -> Recording:
    counts = dict(zip(WORKERS, samples, strict=False))
    return write_recording(path / "r.parquet", random_rows(Random(seed), counts, questions=questions))


def committee(answers: AnswerMatrix, members: tuple[int, ...], weights: tuple[float, ...] = ()) -> Committee:
    return Committee(tuple(answers.workers[member] for member in members), weights)


def numbered(answers: AnswerMatrix, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(answers.workers.index(name) for name in names)


# --- what they cost ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("early_stop", [False, True])
@pytest.mark.parametrize("seed", range(2))
async def test_computed_committee_cost_equals_the_cost_of_a_real_run(
    tmp_path: Path, seed: int, early_stop: bool
) -> None:
    """Prices differ by worker, and answers of a worker are equally long, so who is asked first is known."""
    prices = {"ada": 4.0, "bob": 1.0, "cy": 2.0, "dan": 8.0}
    random = Random(f"costs/{seed}")
    rows = [
        (question, [replace(response, output_tokens=TOKENS) for response in responses])
        for question, responses in random_rows(random, dict.fromkeys(WORKERS, 2), questions=10)
    ]
    recording = write_recording(tmp_path / "r.parquet", rows)
    pool, tasks = pool_of(recording, prices=prices), tasks_of(recording, "train")
    answers = await read_answers(tasks, replayed(recording, prices))
    stopped = 0
    for _ in range(10):
        members = tuple(random.choices(range(4), k=random.randint(1, 5)))
        planner = committee(answers, members)
        runner = Runner(planner, pool, settings=ExecutionSettings(early_stop=early_stop))
        really = [(await runner.answer(task.question, seed="0")).cost_usd for task in tasks]
        counted = committee_cost(replace(answers, samples=1), members, early_stop=early_stop)
        assert counted.tolist() == pytest.approx(really), members
        stopped += int((counted < committee_cost(answers, members) - 1e-12).sum())
    assert bool(stopped) == early_stop


async def test_the_cheapest_worker_of_a_cluster_is_called_first(tmp_path: Path) -> None:
    """ada, bob and cy all say the same: two of them are asked, on each question the two that are cheapest there."""
    rows = [
        (
            RecordedQuestion(f"q{n}", f"Question {n}?", None, None, "train"),
            [RecordedResponse(w, 0, "Answer: a", score=1.0) for w in WORKERS[:3]],
        )
        for n in range(2)
    ]
    answers = await answers_of(write_recording(tmp_path / "r.parquet", rows))
    answers = replace(answers, cost_QW=np.array([[1.0, 2.0, 4.0], [4.0, 2.0, 1.0]]))
    assert committee_cost(answers, (0, 1, 2), early_stop=True, price_QW=answers.cost_QW).tolist() == [
        3.0,
        3.0,
    ]
    # In the mean bob is the cheapest, and of the others ada comes first.
    assert committee_cost(answers, (0, 1, 2), early_stop=True).tolist() == [3.0, 6.0]


async def test_best_fixed_plan_is_the_most_accurate_within_its_cost(tmp_path: Path) -> None:
    """ada and bob are both right on six questions of ten and cy, who costs nine times as much, on all of them."""
    rows = []
    for number in range(20):
        wrong = {WORKERS[number % 2]} if number % 10 < 4 else set()
        said = [
            RecordedResponse(w, 0, f"Answer: {w if w in wrong else 'yes'}", score=float(w not in wrong))
            for w in WORKERS[:3]
        ]
        rows.append((RecordedQuestion(f"q{number}", f"Question {number}?", "yes", None, "train"), said))
    answers = await answers_of(write_recording(tmp_path / "r.parquet", rows))
    answers = replace(answers, cost_QW=np.broadcast_to([1.0, 1.0, 9.0], answers.cost_QW.shape))
    assert committee_cost(answers, (2, 0, 1), early_stop=True).mean() == pytest.approx(2 + 0.4 * 9)
    assert best_fixed_plan(answers, max_cost=9.0) == Committee(("cy",))
    assert best_fixed_plan(answers, max_cost=1.0) == Committee(("ada",))
    assert best_fixed_plan(answers, max_cost=0.5) is None


# --- votes in numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
async def test_computed_vote_equals_the_vote_of_a_real_run(tmp_path: Path, seed: int, weighted: bool) -> None:
    recording = random_recording(tmp_path, f"votes/{seed}")
    pool, tasks, answers = pool_of(recording), tasks_of(recording, "train"), await answers_of(recording)
    random = Random(f"committees/{seed}/{weighted}")
    for _ in range(10):
        members = tuple(random.choices(range(4), k=random.randint(1, 6)))
        weights = tuple(random.choices(WEIGHTS, k=len(members))) if weighted else ()
        really = await run(committee(answers, members, weights), pool, tasks)
        assert answers.vote_scores(members, weights).tolist() == really, (members, weights)


async def test_computed_vote_includes_a_calculator_beside_recorded_workers(
    tmp_path: Path,
) -> None:
    rows = []
    for number in range(2, 14):
        text = f"What is {number} * 3?" if number % 2 else f"What comes after {number}?"
        gold = str(number * 3 if number % 2 else number + 1)
        said = {"ada": gold if number % 3 else "7", "bob": gold if number % 4 < 2 else "8"}
        responses = [
            RecordedResponse(name, 0, f"Answer: {answer}", score=float(answer == gold))
            for name, answer in said.items()
        ]
        rows.append((RecordedQuestion(f"q{number}", text, gold, None, "train"), responses))
    recording = write_recording(tmp_path / "r.parquet", rows)
    pool, tasks = pool_of(recording, CalculatorWorker()), tasks_of(recording, "train")
    answers = await read_answers(tasks, measurable_workers(pool, tasks))
    assert answers.workers == ("ada", "bob", "calculator")
    assert answers.score_QW[:, 2].mean() == 0.5
    assert answers.cost[2] == 0
    for members in ((2,), (2, 2), (0, 2), (2, 1), (0, 1, 2), (0, 2, 2), (2, 2, 2, 1, 1)):
        really = await run(committee(answers, members), pool, tasks)
        assert answers.vote_scores(members).tolist() == really, members


def test_without_gold_answers_only_recorded_workers_are_measured(tmp_path: Path) -> None:
    recording = random_recording(tmp_path, "no gold", (1, 1))
    pool, tasks = pool_of(recording, CalculatorWorker()), tasks_of(recording, "train")
    assert [worker.profile.name for worker in measurable_workers(pool, tasks)] == ["ada", "bob"]


async def test_computed_vote_uses_weights_with_all_their_digits(tmp_path: Path) -> None:
    question = RecordedQuestion("q", "Who is right?", None, None, "train")
    responses = [
        RecordedResponse("ada", 0, "Answer: a", score=0.0),
        RecordedResponse("bob", 0, "Answer: a", score=0.0),
        RecordedResponse("cy", 0, "Answer: b", score=1.0),
    ]
    recording = write_recording(tmp_path / "r.parquet", [(question, responses)])
    answers, weights = await answers_of(recording), (1.172, 1.171, 2.344)
    really = await run(
        committee(answers, (0, 1, 2), weights), pool_of(recording), tasks_of(recording, "train")
    )
    assert answers.vote_scores((0, 1, 2), weights).tolist() == really


async def test_vote_gets_the_majority_verdict_if_verdicts_differ(
    tmp_path: Path,
) -> None:
    question = RecordedQuestion("q", "Who is right?", None, None, "train")
    scores = {"ada": 1.0, "bob": 0.0, "cy": 0.0}
    responses = [
        RecordedResponse(name, 0, f"{name} says\nAnswer: a", score=score) for name, score in scores.items()
    ]
    recording = write_recording(tmp_path / "r.parquet", [(question, responses)])
    pool, tasks, answers = pool_of(recording), tasks_of(recording, "train"), await answers_of(recording)
    for members in ((0,), (1,), (0, 1), (1, 2), (0, 1, 2)):
        assert answers.vote_scores(members).tolist() == await run(committee(answers, members), pool, tasks), (
            members
        )


@pytest.mark.parametrize(
    ("answers_given", "gold"),
    [
        (
            {
                "ada": ("It is:\nAnswer: a", 1.0),
                "bob": ("So:\nAnswer: a", 1.0),
                "cy": ("<answer>a</answer>", 0.0),
            },
            "a",
        ),
        (
            {"ada": ("<answer>__init__</answer>", 1.0), "bob": ("In tags <answer>__init__</answer>", 1.0)},
            None,
        ),
        ({"ada": ("So it is\nAnswer: _id", 1.0), "bob": ("It is id.\nAnswer: id", 0.0)}, None),
    ],
    ids=["a response in the words that were once graded", "underscores in tags", "underscores in a line"],
)
async def test_computed_vote_is_graded_by_the_response_text_of_the_vote_tool(
    tmp_path: Path, answers_given: dict[str, tuple[str, float]], gold: str | None
) -> None:
    question = RecordedQuestion("q", "Which name?", gold, None, "train")
    responses = [
        RecordedResponse(name, 0, text, score=score) for name, (text, score) in answers_given.items()
    ]
    recording = write_recording(tmp_path / "r.parquet", [(question, responses)])
    pool, tasks, answers = pool_of(recording), tasks_of(recording, "train"), await answers_of(recording)
    assert answers.vote_scores((0, 1)).tolist() == await run(committee(answers, (0, 1)), pool, tasks) == [1.0]


@pytest.mark.parametrize("seed", range(2))
async def test_computed_unanimity_matches_the_stops_of_a_real_cascade(tmp_path: Path, seed: int) -> None:
    recording = random_recording(tmp_path, f"unanimous/{seed}", questions=16)
    pool, tasks, answers = pool_of(recording), tasks_of(recording, "train"), await answers_of(recording)
    seen = []
    for members in ((0, 1), (1, 2), (0, 2), (0, 1, 2)):
        cascade = Cascade(committee(answers, members).workers, "dan")
        traces = [(await rolled(cascade, pool, task)).trace for task in tasks]
        stopped = ["dan" not in [span.worker for span in trace.spans] for trace in traces]
        assert answers.unanimous(members).tolist() == stopped, members
        seen += stopped
    assert set(seen) == {True, False}


async def test_an_empty_committee_is_not_unanimous_and_is_wrong(tmp_path: Path) -> None:
    question = RecordedQuestion("q", "Who speaks?", None, None, "train")
    rows = [(question, [RecordedResponse(name, 0, " \n", score=0.0) for name in WORKERS])]
    answers = await answers_of(write_recording(tmp_path / "r.parquet", rows))
    assert answers.unanimous((0, 1)).tolist() == [False]
    assert answers.vote_scores((0, 1, 2)).tolist() == [0.0]


# --- what is read ------------------------------------------------------------------------------------------


async def test_answers_read_from_a_recording_match_its_content(tmp_path: Path) -> None:
    recording = write_recording(tmp_path / "r.parquet", world())
    tasks = tasks_of(recording, "train")
    answers = await answers_of(recording)
    assert answers.workers == ("ada", "bob", "cy")
    assert answers.answer_QWR.shape == answers.alone_QWR.shape == (24, 3, 5)
    assert answers.samples == 3
    assert [answers.samples_of(w) for w in range(3)] == [3, 3, 3]
    assert answers.texts == tuple(task.question.text for task in tasks)
    for q, w, r in product(range(24), range(3), range(5)):
        response = recording.responses(answers.texts[q])[answers.workers[w]][r % 3]
        assert answers.alone_QWR[q, w, r] == response.score
    assert answers.cost == pytest.approx([1e-4, 1e-4, 4e-4])
    for w, name in enumerate(answers.workers):
        given = [r.correct for text in answers.texts for r in recording.responses(text)[name]]
        assert answers.accuracy[w] == pytest.approx(fmean(given))


# --- choices -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
async def test_best_vote_is_the_best_prefix_of_workers_by_accuracy(tmp_path: Path, seed: int) -> None:
    answers = await answers_of(random_recording(tmp_path, f"most/{seed}", questions=20))
    chosen = best_vote(answers, weighted=False)
    order = np.argsort(-answers.accuracy, kind="stable").tolist()
    members = numbered(answers, chosen.workers)
    assert list(members) == order[: len(members)]
    assert chosen.weights == ()
    prefixes = [answers.vote_scores(tuple(order[:k])).mean() for k in range(1, 5)]
    assert answers.vote_scores(members).mean() == max(prefixes)
    assert len(members) == 1 + prefixes.index(max(prefixes))
    assert len(best_vote(answers, weighted=False, most=2).workers) <= 2


def wrong_answers(answers: AnswerMatrix) -> float:
    """K - 1, by looking at every pair of wrong answers: with one agreement more than there is."""
    pairs = same = 0
    for q, (one, other) in product(range(len(answers.texts)), combinations(range(len(answers.workers)), 2)):
        said = answers.answer_QWR[q, [one, other], 0]
        if -1 not in said and not answers.voted_QWR[q, [one, other], 0].any():
            pairs += 1
            same += int(said[0] == said[1])
    return (pairs + 1) / (same + 1)


@pytest.mark.parametrize("seed", range(2))
async def test_best_weighted_vote_uses_log_odds_and_always_has_members(tmp_path: Path, seed: int) -> None:
    answers = await answers_of(random_recording(tmp_path, f"weights/{seed}", questions=20))
    chosen = best_vote(answers, weighted=True)
    members = numbered(answers, chosen.workers)
    shares = answers.accuracy[list(members)]
    assert list(shares) == sorted(shares, reverse=True)
    odds = np.log(shares / (1 - shares))
    many, two = ((odds + np.log(wrong)).clip(0.01).round(3) for wrong in (wrong_answers(answers), 1.0))
    assert any(chosen.weights == pytest.approx(weights.tolist(), abs=1e-3) for weights in (many, two))
    found = answers.vote_scores(members, chosen.weights).mean()
    assert found >= max(answers.vote_scores(members, tuple(weights)).mean() for weights in (many, two))


async def test_a_worker_that_is_never_or_always_right_has_a_weight_all_the_same(tmp_path: Path) -> None:
    scores = {"ada": 1.0, "bob": 0.0}
    question = RecordedQuestion("q", "Who is right?", None, None, "train")
    responses = [RecordedResponse(name, 0, f"Answer: {name}", score=score) for name, score in scores.items()]
    answers = await answers_of(write_recording(tmp_path / "r.parquet", [(question, responses)]))
    assert best_vote(answers, weighted=True) == Committee(("ada",), (4.595,))


@pytest.mark.parametrize("seed", range(2))
async def test_the_best_fixed_plan_of_a_small_pool_is_that_of_brute_force(tmp_path: Path, seed: int) -> None:
    answers = await answers_of(random_recording(tmp_path, f"fixed/{seed}", (3, 3, 3), questions=20))
    order = np.argsort(-answers.accuracy, kind="stable").tolist()
    plans = [plan for size in (1, 2, 3) for plan in combinations_with_replacement(order, size)]
    costs = {plan: answers.cost[list(plan)].sum() for plan in plans}
    for max_cost in (min(costs.values()), float(np.median(list(costs.values()))), np.inf):
        chosen = numbered(answers, best_fixed_plan(answers, most=3, max_cost=max_cost * (1 + 1e-9)).workers)
        within = [plan for plan in plans if costs[plan] <= max_cost * (1 + 1e-9)]
        assert chosen in within
        assert answers.vote_scores(chosen).mean() == max(answers.vote_scores(plan).mean() for plan in within)


async def test_of_equally_good_fixed_plans_the_cheapest_is_taken(tmp_path: Path) -> None:
    question = RecordedQuestion("q", "Who is right?", None, None, "train")
    tokens = {"ada": 30, "bob": 10, "cy": 20}
    responses = [
        RecordedResponse(name, 0, "Answer: a", score=1.0, output_tokens=count)
        for name, count in tokens.items()
    ]
    answers = await answers_of(write_recording(tmp_path / "r.parquet", [(question, responses)]))
    assert best_fixed_plan(answers) == Committee(("bob",))


@pytest.mark.parametrize("seed", range(2))
async def test_the_best_cascade_is_that_of_brute_force_within_any_cost(tmp_path: Path, seed: int) -> None:
    recording = random_recording(tmp_path, f"cascade/{seed}", (2, 2, 2, 2), questions=8)
    pool, tasks, answers = pool_of(recording), tasks_of(recording, "train"), await answers_of(recording)
    really: dict[Cascade, tuple[float, float]] = {}
    for first in combinations(WORKERS, 2):
        for then in set(WORKERS) - set(first):
            rollouts = [await rolled(Cascade(first, then), pool, task) for task in tasks]
            really[Cascade(first, then)] = (
                fmean(rollout.correct for rollout in rollouts),
                fmean(rollout.trace.cost_usd for rollout in rollouts),
            )
    costs = sorted(cost for _, cost in really.values())
    for max_cost in (costs[0], costs[len(costs) // 2], np.inf):
        chosen = best_cascade(answers, max_cost=max_cost * (1 + 1e-9))
        assert chosen is not None
        within = [share for share, cost in really.values() if cost <= max_cost * (1 + 1e-9)]
        assert really[chosen] == (max(within), pytest.approx(min(really[chosen][1], max_cost)))
    assert best_cascade(answers, max_cost=costs[0] * 0.99) is None


async def test_two_workers_make_no_cascade(tmp_path: Path) -> None:
    answers = await answers_of(random_recording(tmp_path, "two", (1, 1)))
    assert best_cascade(answers) is None
