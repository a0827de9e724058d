"""Tasks that are all there: their order belongs to the seed, and not to the file that they are from."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import ConfigError
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task, TaskList, shuffled
from podium.types import Question


def tasks(count: int) -> list[Task]:
    return [Task(f"set/{n}", Question(text=f"What is {n}?"), str(n), Exact()) for n in range(count)]


def ids(listed: TaskList) -> list[str]:
    return [task.id for task in listed]


def test_first_tasks_are_a_uniform_sample_with_stable_indices() -> None:
    listed = TaskList("set/test", tasks(1000), size=100, seed=3)
    assert (listed.name, len(listed), listed.warnings) == ("set/test", 100, ())
    assert [listed[index] for index in range(100)] == list(listed)
    numbers = [int(task.gold) for task in listed]
    assert len(set(numbers)) == 100
    assert 300 < sum(numbers) / 100 < 700
    assert ids(TaskList("set/test", tasks(5), seed=None)) == [f"set/{n}" for n in range(5)]


def test_task_list_is_capped_at_its_tasks_and_refused_if_empty() -> None:
    assert len(TaskList("set", tasks(3), size=100)) == 3
    with pytest.raises(IndexError):
        TaskList("set", tasks(3))[3]
    with pytest.raises(ConfigError) as refused:
        TaskList("mine/test", [], warnings=["mine: its answer is empty (4)"])
    assert str(refused.value) == (
        "mine/test has no tasks (mine: its answer is empty (4)); use another split, or check its source."
    )


@given(st.integers(1, 30), st.integers(0, 30), st.integers(0, 5), st.randoms(use_true_random=False))
def test_task_order_depends_on_the_seed_and_not_on_the_source(
    size: int, more: int, seed: int, rng: Random
) -> None:
    moved = tasks(30)
    rng.shuffle(moved)
    one, other = (
        TaskList("s", tasks(30), size=size, seed=seed),
        TaskList("s", moved, size=size + more, seed=seed),
    )
    assert ids(other)[:size] == ids(one)
    assert len(other) == min(30, size + more)


def test_other_seeds_give_other_orders() -> None:
    assert len({tuple(ids(TaskList("s", tasks(10), seed=seed))) for seed in range(20)}) == 20


def test_tasks_that_are_added_leave_the_others_in_their_order() -> None:
    few = [task.id for task in shuffled(tasks(20), 0)]
    many = [task.id for task in shuffled(tasks(40), 0)]
    assert [task for task in many if task in few] == few
