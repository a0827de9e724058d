"""The Conductor that ships for the orchestra: it leads its pool without a key, and better than its start does."""

import asyncio
from pathlib import Path

from podium.conductor import Checkpoint, Conductor, open_policy
from podium.config import load
from podium.evals import evaluate
from podium.tasks import open_tasks
from podium.team import Runner
from podium.team.opened_planner import open_planner
from podium.team.team_file import TeamReference, open_pool
from podium.train.settings import TrainSettings

CONFIG = Path(__file__).parents[2] / "configs" / "world.toml"


def test_orchestra_uses_the_trained_conductor_and_beats_the_warm_start():
    pool = open_pool("orchestra")
    tasks = list(open_tasks("world", "train", size=40))
    led = open_planner(TeamReference("orchestra").read(), pool, seed="0").planner
    start = Checkpoint.read("world-warmstart")
    untrained = Conductor(open_policy(start), start.prompt)
    trained, before = (
        asyncio.run(evaluate(Runner(planner, pool, max_steps=5), tasks)) for planner in (led, untrained)
    )
    assert trained.accuracy.mean > before.accuracy.mean + 0.1
    assert trained.validity > 0.9


def test_the_longest_plans_fit_into_what_training_lets_the_policy_write():
    start = Checkpoint.read("world-warmstart")
    plan = (
        "needs ships 3, firms 0, persons 0, places 1, joins 9; steps 5\nmodel_id = [3, 0, 10, 1, 9]\n"
        'subtasks = ["0. Find the home port of the captain of the Northern Petrel.", '
        + ", ".join(
            f'"{k}. Find the discovery year of the favourite dish of step {k - 1}."' for k in range(1, 5)
        )
        + ']\naccess_list = [[], ["all"], ["all"], ["all"], [0, 1, 3]]'
    )
    assert len(start.tokenizer().encode(plan).ids) < load(CONFIG, TrainSettings).grpo.max_tokens
