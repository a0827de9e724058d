"""Seeds of published runs draw what they drew then."""

from __future__ import annotations

from random import Random

from podium.scoring.protocol import RolloutRequest
from podium.scoring.session import RolloutSeeds
from podium.train.schedule import iteration_seeds, schedule
from podium.train.settings import GRPOSettings, TrainSettings

SETTINGS = TrainSettings(
    start="-",
    engine="shared_prefix",
    tasks="gsm8k",
    seed=7,
    grpo=GRPOSettings(iterations=3, questions=4, group=4),
)
TASKS = ["a", "b", "c", "d", "e"]


def test_questions_of_an_iteration_draw_their_levels_in_turn() -> None:
    rows = schedule(SETTINGS, TASKS)
    seeds_of = iteration_seeds(rows, SETTINGS.seed)
    for iteration in range(3):
        random = Random(f"train/7/{iteration}/thrift")
        wanted = [random.randrange(4) for _ in range(4)]
        of_iteration = [row for row in rows if row.iteration == iteration]
        for rollout in (0, 3):
            asked = [RolloutRequest(task=row.task, group=row.name, rollout=rollout) for row in of_iteration]
            drawn = []
            for seeds in map(seeds_of, asked):
                random = Random(seeds.level)
                drawn.append([random.randrange(4) for _ in range(seeds.earlier_levels + 1)][-1])
            assert drawn == wanted


def test_pools_and_calls_are_named_by_iteration_and_task() -> None:
    rows = schedule(SETTINGS, TASKS)
    row = rows[6]
    asked = RolloutRequest(task=row.task, group=row.name, rollout=3)
    seeds = iteration_seeds(rows, SETTINGS.seed)(asked)

    assert seeds.pool == f"7/1/{row.task}"
    assert seeds.calls == f"train/7/1/{row.task}/2/3"


def test_a_rollout_outside_the_schedule_draws_as_in_a_service() -> None:
    asked = RolloutRequest(task="a", group="x")

    assert iteration_seeds(schedule(SETTINGS, TASKS), SETTINGS.seed)(asked) == RolloutSeeds.of(asked)


def test_the_order_of_a_table_is_named_by_the_seed_alone() -> None:
    order = list(TASKS)
    Random("tasks/7/turn 0").shuffle(order)
    for engine in ("shared_prefix", "trl"):
        rows = schedule(SETTINGS.model_copy(update={"engine": engine}), TASKS)
        assert [row.task for row in rows[:5]] == order
