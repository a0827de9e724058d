"""Planners that give workers roles: what each worker sees, and when a planner stops."""

import pytest

from planner_teams import answered, called, team
from podium.errors import ConfigError
from podium.planners import find_baseline, open_baseline
from podium.planners.mixture import AGGREGATE
from podium.types import ANSWER_WHOLE_QUESTION


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


async def test_in_fusion_a_panel_answers_and_one_worker_writes_from_all():
    pool = team(ada={ANSWER_WHOLE_QUESTION: "a"}, bo={AGGREGATE: "the answer", ANSWER_WHOLE_QUESTION: "b"})
    planner = open_baseline("fusion:ada+bo:bo", pool.profiles)
    trace = await answered(planner, pool)
    assert (trace.answer, trace.planner, called(trace)) == (
        "the answer",
        "fusion:ada+bo:bo",
        [["ada", "bo", "bo"]],
    )
    assert seen(pool, "bo") == [[], ["a", "b"]]


async def test_in_self_fusion_a_worker_writes_from_its_own_answers():
    pool = team(ada=["a", "b", "c", "the answer"])
    trace = await answered(open_baseline("self-fusion:ada:3", pool.profiles), pool)
    assert (trace.answer, trace.planner) == ("the answer", "self-fusion:ada:3")
    assert seen(pool, "ada") == [[], [], [], ["a", "b", "c"]]
    assert len({request.seed for request in pool.named("ada").requests}) == 4


@pytest.mark.parametrize(
    ("name", "panel", "judge"),
    [
        ("fusion:ada:bo", ("ada",), "bo"),
        ("fusion:2xada+m:1:m:1", ("ada", "ada", "m:1"), "m:1"),
        ("fusion:m:1:ada", ("m:1",), "ada"),
        ("self-fusion:m:1:2", ("m:1", "m:1"), "m:1"),
    ],
)
def test_names_with_colons_may_be_fused(name, panel, judge):
    pool = team(ada=[], bo=[], **{"m:1": []})
    planner = open_baseline(name, pool.profiles)
    assert planner.layers == (panel, (judge,))
    baseline, argument = find_baseline(name)
    assert set(baseline.needs(argument)) <= {*panel, judge}


@pytest.mark.parametrize(
    "name",
    [
        "fusion",
        "fusion:",
        "fusion:ada",
        "fusion:ada+bo",
        "fusion:ada:",
        "fusion::ada",
        "fusion:ada+adda:bo",
        "fusion:ada:bo+ada",
        "self-fusion",
        "self-fusion:ada",
        "self-fusion:ada:1",
        "self-fusion:ada:1001",
        "self-fusion:ada:x",
        "self-fusion::3",
        "self-fusion:adda:3",
    ],
)
def test_malformed_fusion_names_are_refused(name):
    pool = team(ada=[], bo=[])
    with pytest.raises(ConfigError):
        open_baseline(name, pool.profiles)
