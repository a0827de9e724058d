"""Planners that give workers roles: what each worker sees, and when a planner stops."""

import pytest
from teams import answered, team

from podium.errors import ConfigError
from podium.planners import open_baseline
from podium.planners.mixture import AGGREGATE
from podium.planners.phrases import ANSWER_WHOLE_QUESTION


def seen(pool, worker):
    """The responses that each call of a worker was shown."""
    return [[step.response for step in request.view.earlier] for request in pool.named(worker).requests]


async def test_self_reflection_sees_all_its_attempts_and_the_last_one_counts():
    pool = team(ada=["1", "2", "3", "4", "5"])
    trace = await answered(open_baseline("self-reflection:ada:5", pool.profiles), pool)
    assert trace.answer == "5"
    assert seen(pool, "ada") == [[], ["1"], ["1", "2"], ["1", "2", "3"], ["1", "2", "3", "4"]]


async def test_each_layer_of_a_mixture_reads_the_whole_layer_before():
    pool = team(
        ada={AGGREGATE: "a2", ANSWER_WHOLE_QUESTION: "a1"},
        bo={AGGREGATE: "b2", ANSWER_WHOLE_QUESTION: "b1"},
        cy={AGGREGATE: "the answer"},
    )
    trace = await answered(open_baseline("mixture-of-agents:ada+bo>ada+bo>cy", pool.profiles), pool)
    assert trace.answer == "the answer"
    assert seen(pool, "ada") == seen(pool, "bo") == [[], ["a1", "b1"]]
    assert seen(pool, "cy") == [["a2", "b2"]]
    assert len(trace.spans) == 2 * 2 + 1


async def test_a_worker_may_write_from_its_own_answers():
    pool = team(ada=["a", "b", "c", "the answer"])
    trace = await answered(open_baseline("mixture-of-agents:3xada>ada", pool.profiles), pool)
    assert trace.answer == "the answer"
    assert seen(pool, "ada") == [[], [], [], ["a", "b", "c"]]
    assert len({request.seed for request in pool.named("ada").requests}) == 4


@pytest.mark.parametrize("argument", ["", ":", ":ada", ":ada>", ":>ada", ":ada+adda>bo", ":ada>bo+ada"])
def test_a_mixture_without_layers_of_known_workers_is_refused(argument):
    pool = team(ada=[], bo=[])
    with pytest.raises(ConfigError):
        open_baseline(f"mixture-of-agents{argument}", pool.profiles)
