"""Which task each row asks."""

from __future__ import annotations

from podium.train.lm.schedule import by_label, schedule


def test_each_task_comes_once_before_any_comes_again() -> None:
    rows = schedule(["a", "b", "c"], iterations=3, questions=2, rounds=1, seed=0)

    drawn = [row.task for row in rows]
    assert sorted(drawn[:3]) == sorted(drawn[3:]) == ["a", "b", "c"]


def test_the_rounds_of_a_question_stand_together_and_share_their_group() -> None:
    rows = schedule(["a", "b"], iterations=1, questions=2, rounds=2, seed=0)

    assert [row.round for row in rows] == [0, 1, 0, 1]
    assert rows[0].seed == rows[1].seed != rows[2].seed == rows[3].seed
    assert rows[0].task == rows[1].task


def test_the_seed_names_the_order() -> None:
    tasks = [str(number) for number in range(20)]
    first = schedule(tasks, iterations=5, questions=4, rounds=1, seed=1)

    assert first == schedule(tasks, iterations=5, questions=4, rounds=1, seed=1)
    assert [row.task for row in first] != [
        row.task for row in schedule(tasks, iterations=5, questions=4, rounds=1, seed=2)
    ]


def test_the_same_task_twice_in_a_batch_has_two_labels() -> None:
    rows = schedule(["a"], iterations=1, questions=3, rounds=1, seed=0)

    assert len(by_label(rows)) == 3
