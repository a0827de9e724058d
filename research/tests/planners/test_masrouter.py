"""MASRouter draws a team from a question's words, each mode is a workflow, and policy gradient trains the draws."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from known_answers import known_answers
from planners.planner_teams import answered, called, team
from podium.errors import ConfigError
from podium.planners import open_baseline
from podium.planners.controls import CHECK, NEXT
from podium.planners.reflection import AGAIN
from podium.types import ANSWER_WHOLE_QUESTION, Profile
from podium_research.planners.debate import REVISE
from podium_research.planners.masrouter import MasRouter, team_workflow
from podium_research.planners.masrouter_controller import (
    DIMENSIONS,
    Controller,
    ControllerSample,
    ControllerTraining,
    RoutedTeam,
    loss_and_gradients,
    train_on_scores,
    walk,
)
from podium_research.planners.routers import text_features

POOL = tuple(Profile(name=name) for name in ("ada", "bob", "vote"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (
            "io",
            [
                (1, NEXT, ()),
                (0, ANSWER_WHOLE_QUESTION, ()),
                (0, ANSWER_WHOLE_QUESTION, ()),
                (2, "", (0, 1, 2)),
            ],
        ),
        ("chain", [(1, NEXT, ()), (0, ANSWER_WHOLE_QUESTION, (0,)), (0, CHECK, (1,))]),
        ("full", [(1, NEXT, ()), (0, ANSWER_WHOLE_QUESTION, (0,)), (0, CHECK, (0, 1))]),
        (
            "debate",
            [
                *((1, NEXT, ()), (0, ANSWER_WHOLE_QUESTION, ()), (0, ANSWER_WHOLE_QUESTION, ())),
                *((1, REVISE, (0, 1, 2)), (0, REVISE, (0, 1, 2)), (0, REVISE, (0, 1, 2))),
                (2, "", (3, 4, 5)),
            ],
        ),
        (
            "reflection",
            [
                *((1, NEXT, ()), (0, ANSWER_WHOLE_QUESTION, ()), (0, ANSWER_WHOLE_QUESTION, ())),
                *((1, AGAIN, (0,)), (0, AGAIN, (1,)), (0, AGAIN, (2,))),
                (2, "", (3, 4, 5)),
            ],
        ),
    ],
)
def test_masrouter_mode_sets_the_access_lists_of_its_workflow(mode, expected):
    members = (("starter", "bob"), ("solver", "ada"), ("checker", "ada"))
    steps = team_workflow(RoutedTeam(mode, members), POOL).steps
    said = [(step.worker, "" if step.worker == 2 else step.subtask, step.access.steps) for step in steps]
    assert said == expected


async def test_the_same_question_gets_the_same_team_and_calls_it_alone():
    controller = Controller.untrained(["ada", "bob"], seed=3)
    expected = controller.draw("How many?", Random("masrouter/How many?"))
    pool = team(eve=[], ada=["Answer: 4"] * 12, bob=["Answer: 4"] * 12)
    trace = await answered(MasRouter(controller), pool)
    assert trace.rounds[0].workflow == team_workflow(expected, pool.profiles)
    assert len({controller.draw(f"Question {k}?", Random(f"{k}")) for k in range(50)}) > 10


TEMPERATURES = {"kind": 0.5, "mode": 0.8, "number": 1.0, "role": 0.5, "worker": 1.0}


def loss_of(weights, questions):
    """The loss, by its formula, of (features, kind, noise, drawn rows, utility) of each question."""
    total = 0.0
    for x, kind, noise, rows, utility in questions:
        mean = weights["encoder"] @ x
        point = mean + noise
        tables = ["kind", "mode", "number", *["role", "worker"] * (rows[1] + 1)]
        for table, row in zip(tables, [kind, *rows], strict=True):
            logits = [float(vector @ np.tanh(point)) / TEMPERATURES[table] for vector in weights[table]]
            log_p = logits[row] - np.log(np.sum(np.exp(logits)))
            total -= log_p if table == "kind" else utility * log_p
            point = point if table == "kind" else point + weights[table][row]
        total += 0.001 * np.mean(mean**2 / 0.1**2) / 2
    return total / len(questions)


def test_masrouter_gradients_equal_numerical_slopes_of_the_loss():
    rng = np.random.default_rng(1)
    rows = {
        "encoder": (3, 4),
        "kind": (2, 3),
        "mode": (2, 3),
        "number": (3, 3),
        "role": (2, 3),
        "worker": (2, 3),
    }
    weights = {name: rng.normal(size=shape) for name, shape in rows.items()}
    questions, samples = [], []
    for k in range(3):
        x, noise, utility = rng.normal(size=4), 0.1 * rng.normal(size=3), float(rng.normal())
        point = weights["encoder"] @ x + noise
        draws = walk(weights, point, lambda share: int(rng.choice(len(share), p=share)))
        samples.append(ControllerSample(x, k % 2, point, draws))
        questions.append((x, k % 2, noise, [draw.row for draw in draws], utility))
    loss, gradients = loss_and_gradients(weights, samples, [question[-1] for question in questions])
    assert loss == pytest.approx(loss_of(weights, questions))
    for name, array in weights.items():
        for place in np.ndindex(array.shape):
            kept, sides = array[place], []
            for step in (1e-5, -1e-5):
                array[place] = kept + step
                sides.append(loss_of(weights, questions))
            array[place] = kept
            assert gradients[name][place] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-7)


def test_training_learns_mode_and_members_cost_without_untried_teams():
    start = Controller.untrained(["ada", "bob"], kinds=("sums", "names"))
    texts = [f"{'sum' if k % 2 else 'capital'} of {k}" for k in range(64)]
    kinds = ["sums" if k % 2 else "names" for k in range(64)]
    training = ControllerTraining(start, texts, kinds=kinds, rate=0.02)
    training.ask(range(16))
    training.tell([None] * 16)
    assert training.controller == start
    for batch in (batch for epoch in range(10) for batch in training.batches(epoch)):
        teams = training.ask(batch)
        training.tell([float(team.mode == "debate") - 0.1 * len(team.members) for team in teams])
    after = [training.controller.draw(f"sum of {k}", Random(str(k))) for k in range(100, 200)]
    assert Counter(team.mode for team in after).most_common(1)[0][0] == "debate"
    assert np.mean([len(team.members) for team in after]) < 2
    classes = training.controller.arrays["kind"] @ np.tanh(
        training.controller.arrays["encoder"] @ text_features("sum of 99")
    )
    assert classes.argmax() == 0


async def test_masrouter_learns_from_scored_answers_which_worker_to_use():
    texts = tuple(f"{'sum' if k % 2 else 'capital'} of {k}" for k in range(200))
    score_QW = np.array([[float(k % 2), float(1 - k % 2)] for k in range(200)])
    scored = known_answers(("ada", "bob"), texts, score_QW, np.full((200, 2), 0.01))
    planner = open_baseline("masrouter-scored:30", POOL, scored=scored, recorded=True)
    pool = team(ada=["Answer: 1"] * 20, bob=["Answer: 2"] * 20)
    for kind, best in (("sum", "ada"), ("capital", "bob")):
        traces = [await answered(planner, pool, text=f"{kind} of {k}") for k in range(300, 310)]
        assert sum(called(trace) == [[best]] for trace in traces) > 7


def test_more_workers_vote_where_that_is_worth_its_price():
    texts = tuple(f"Question {k}?" for k in range(80))
    score_QW = np.array([[float(k % 3 != worker) for worker in range(3)] for k in range(80)])
    scored = known_answers(("ada", "bob", "cyd"), texts, score_QW, np.full((80, 3), 0.01))
    mean_voters = {}
    for per_usd in (0.0, 100.0):
        controller = train_on_scores(scored, per_usd=per_usd)
        teams = [controller.draw(text, Random(text)) for text in texts]
        mean_voters[per_usd] = np.mean([len(team.voters(controller.workers)) for team in teams])
    assert mean_voters[0.0] > 1.7
    assert mean_voters[100.0] < 1.2


def test_a_controller_is_read_from_its_file_and_no_other_file(tmp_path):
    file = tmp_path / "controller.json"
    controller = Controller.untrained(["ada"])
    file.write_text(controller.model_dump_json())
    assert open_baseline(f"masrouter:{file}", POOL) == MasRouter(controller, f"masrouter:{file}")
    without = controller.of({**controller.arrays, "role": np.ones((2, DIMENSIONS))})
    infinite = controller.model_dump_json().replace('"worker":[[', '"worker":[[NaN,')
    for text, why in (
        ("{}", "does not hold a controller of MASRouter"),
        (infinite, "does not hold a controller of MASRouter"),
        (without.model_dump_json(), f"this controller needs 5 rows of {DIMENSIONS} weights in 'role'"),
        (Controller.untrained([]).model_dump_json(), f"needs 1 rows of {DIMENSIONS} weights in 'worker'"),
        (Controller.untrained(["eve"]).model_dump_json(), "The pool has no worker named 'eve'"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=why):
            open_baseline(f"masrouter:{file}", POOL)
    file.write_text(controller.model_dump_json())
    for name, pool, why in (
        (f"masrouter:{file}", POOL[:2], "votes with the pool's worker 'vote'"),
        ("masrouter:/no/such", POOL, "there is no such file"),
        ("masrouter-scored:0", POOL, "learns from workers' answers"),
    ):
        with pytest.raises(ConfigError, match=why):
            open_baseline(name, pool)
