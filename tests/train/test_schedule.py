"""Which task each row asks."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from podium.errors import ConfigError
from podium.train.schedule import (
    ScheduledGroup,
    generate_tasks,
    has_generated_tasks,
    schedule,
)
from podium.train.settings import CurriculumStage, GRPOSettings, TrainSettings


def rows_of(tasks: list[str], *, rounds: int = 1, seed: int = 0, **grpo: int) -> list[ScheduledGroup]:
    made = GRPOSettings(**grpo)
    return schedule(TrainSettings(start="-", tasks="gsm8k", rounds=rounds, seed=seed, grpo=made), tasks)


def test_each_task_comes_once_before_any_comes_again() -> None:
    rows = rows_of(["a", "b", "c"], iterations=3, questions=2, rounds=1, seed=0)

    drawn = [row.task for row in rows]
    assert sorted(drawn[:3]) == sorted(drawn[3:]) == ["a", "b", "c"]


def test_rounds_of_a_question_are_adjacent_and_share_a_seed() -> None:
    rows = rows_of(["a", "b"], iterations=1, questions=2, rounds=2, seed=0)

    assert [row.round for row in rows] == [0, 1, 0, 1]
    assert rows[0].name == rows[1].name != rows[2].name == rows[3].name
    assert rows[0].task == rows[1].task


def test_schedule_order_depends_on_the_seed() -> None:
    tasks = [str(number) for number in range(20)]
    first = rows_of(tasks, iterations=5, questions=4, rounds=1, seed=1)

    assert first == rows_of(tasks, iterations=5, questions=4, rounds=1, seed=1)
    assert [row.task for row in first] != [
        row.task for row in rows_of(tasks, iterations=5, questions=4, rounds=1, seed=2)
    ]


def test_the_same_task_twice_in_a_batch_has_two_labels() -> None:
    rows = rows_of(["a"], iterations=1, questions=3, rounds=1, seed=0)

    assert len({row.label for row in rows}) == 3


def hops_of(curriculum: tuple[CurriculumStage, ...]) -> list[set[int]]:
    settings = TrainSettings(
        start="-", tasks="world", curriculum=curriculum, grpo=GRPOSettings(iterations=2, questions=60)
    )
    assert has_generated_tasks(settings)
    tasks = generate_tasks(settings)
    assert [row.task for row in schedule(settings, list(tasks))] == list(tasks)
    hops = [int(task.facts["hops"]) for task in tasks.values()]
    return [set(hops[:60]), set(hops[60:])]


def test_other_questions_are_drawn_in_place_of_those_that_are_left_out() -> None:
    settings = TrainSettings(start="-", tasks="world", grpo=GRPOSettings(iterations=2, questions=3))
    drawn = list(generate_tasks(settings))
    others = list(generate_tasks(settings, without=drawn[:1]))
    assert len(others) == len(drawn)
    assert others[:2] == drawn[1:3]
    assert others[3:] == drawn[3:]


def test_a_generated_set_is_drawn_with_its_own_hops_or_the_curriculums() -> None:
    assert hops_of(()) == [{1, 2, 3, 4, 5, 6}] * 2
    stages = (
        CurriculumStage(start=0, settings={"hop_shares": (1.0,)}),
        CurriculumStage(start=1, settings={"hop_shares": (0.0, 0.0, 1.0)}),
    )
    assert hops_of(stages) == [{1}, {3}]


@pytest.mark.parametrize("starts", [[5], [0, 10, 10], [0, 20, 10]])
def test_a_curriculum_that_does_not_go_forward_is_refused(starts: list[int]) -> None:
    stages = tuple(CurriculumStage(start=start, settings={"hop_shares": (1.0,)}) for start in starts)
    with pytest.raises(ValidationError, match="each other after the one before"):
        TrainSettings(start="-", curriculum=stages)


@pytest.mark.parametrize("shares", [(), (0.0, 0.0), (-0.5, 1.5), (float("nan"),)])
def test_curriculum_with_invalid_hop_shares_is_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="refuses it"):
        hops_of((CurriculumStage(start=0, settings={"hop_shares": shares}),))


def test_a_setting_that_the_task_set_lacks_is_refused() -> None:
    with pytest.raises(ConfigError, match="jumps"):
        hops_of((CurriculumStage(start=0, settings={"jumps": 3}),))
