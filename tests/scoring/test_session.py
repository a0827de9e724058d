"""A session asks for plans round by round, and rewards each plan for what came of it alone."""

import asyncio

import pytest

from podium.calls import CallState
from podium.config import build
from podium.errors import ConfigError
from podium.scoring import RolloutRequest, ScoringSession, ScoringSettings
from podium.scoring.session import trace_id
from podium.types import Profile
from podium.workers.function import FunctionWorker
from podium.workers.pool import Pool
from scripted_session import ACCEPT, BROKEN, CHECKED, RIGHT, TASKS, UNREADABLE, WRONG, make_session


def rollout(*plans, task="sums/6", seed="0", number=0):
    return RolloutRequest(task=task, group=seed, rollout=number, plans=plans)


@pytest.mark.parametrize(
    ("plans", "total", "finished"),
    [
        ((RIGHT,), 1.0, False),
        ((WRONG,), 0.5, False),
        ((UNREADABLE,), 0.0, True),
        ((ACCEPT,), 0.0, True),  # There is nothing to accept yet.
        ((WRONG, RIGHT), 1.0, True),
        ((RIGHT, WRONG), 0.5, True),
        ((RIGHT, ACCEPT), 1.0, True),
        ((WRONG, ACCEPT), 0.5, True),
        ((RIGHT, UNREADABLE), 0.0, True),  # Whatever the round before earned.
    ],
)
async def test_each_round_is_rewarded_for_its_own_plan(plans, total, finished):
    score = await make_session(rounds=2).score(rollout(*plans))
    assert (score.reward, score.finished) == (total, finished)
    assert score.accepted == (plans[-1] == ACCEPT and len(plans) == 2)
    assert score.valid == (total > 0)


@pytest.mark.parametrize(
    ("plans", "dollars", "total"),
    [
        ((RIGHT,), 3, 1 - 3 * 0.05),
        ((WRONG, RIGHT), 1 + 3, 1 - 3 * 0.05),
        ((CHECKED, ACCEPT), 1 + 3, 1.0),
        ((WRONG, CHECKED), 1 + 1 + 3, 1 - 4 * 0.05),
    ],
)
async def test_a_round_pays_for_its_own_calls_alone(plans, dollars, total):
    score = await make_session(rounds=2, reward={"cost": 0.05}).score(rollout(*plans))
    assert score.cost_usd == pytest.approx(dollars)
    assert score.reward == pytest.approx(total)
    assert score.parts is not None
    assert score.parts.cost == pytest.approx(1.0 - total)


async def test_a_prompt_of_a_later_round_shows_the_plan_before_and_its_response():
    session = make_session(rounds=2)
    first = await session.prompt(rollout())
    second = await session.prompt(rollout(WRONG))
    assert first is not None
    assert second is not None
    shown = "\n".join(message.content for message in second)
    assert "What is 6 times 7?" in first[-1].content
    assert "Guess." in shown
    assert "41" in shown


async def test_a_later_round_goes_on_from_the_answers_that_its_prompt_showed():
    calls, kept = [], []

    def answer(messages):
        calls.append(messages)
        return {"text": f"Answer: {41 + len(calls)}", "cost_usd": 1.0}

    worker = FunctionWorker(Profile(name="ada"), answer)
    settings = build({"rounds": 3}, ScoringSettings)
    session = ScoringSession(settings, TASKS, Pool([worker]), CallState(), on_trace=kept.append)
    assert (await session.score(rollout(RIGHT))).correct
    (*_, shown) = await session.prompt(rollout(RIGHT))
    assert "Answer: 42" in shown.content

    accepted = await session.score(rollout(RIGHT, ACCEPT))
    again = await session.score(rollout(RIGHT, RIGHT))

    assert accepted.correct
    assert not again.correct
    assert len(calls) == 2
    assert (accepted.calls, accepted.cost_usd, again.calls, again.cost_usd) == (1, 1.0, 2, 2.0)
    assert sum(trace.cost_usd for trace in kept) == 2.0
    assert kept[2].seconds >= kept[2].spans[1].started_s >= kept[0].seconds


@pytest.mark.parametrize(("kept", "expected"), [(6, 3), (2, 6)])
async def test_first_rounds_run_again_only_if_a_batch_is_not_kept(kept, expected):
    calls = []

    def answer(messages):
        calls.append(messages)
        return "Answer: 42"

    pool = Pool([FunctionWorker(Profile(name="ada"), answer)])
    settings = build({"rounds": 2}, ScoringSettings)
    session = ScoringSession(settings, TASKS, pool, CallState(), kept_rollouts=kept)
    for plans in ((RIGHT,), (RIGHT, ACCEPT)):
        scores = [await session.score(rollout(*plans, number=number)) for number in range(3)]
        assert all(score.correct for score in scores)
    assert len(calls) == expected


@pytest.mark.parametrize("plans", [(UNREADABLE,), (RIGHT, WRONG), (RIGHT, ACCEPT)])
async def test_session_gives_no_prompt_after_the_last_round(plans):
    assert await make_session(rounds=2).prompt(rollout(*plans)) is None


async def test_session_calls_no_worker_after_the_last_round():
    session = make_session(rounds=1, delay=60.0)
    async with asyncio.timeout(10):
        assert await session.prompt(rollout(RIGHT)) is None


async def test_plan_with_a_failed_worker_has_no_reward_and_states_the_failure():
    kept = []
    score = await make_session(kept=kept).score(rollout(BROKEN))
    assert score.reward is None
    assert (score.valid, score.steps, bool(score.plan)) == (True, 1, True)
    assert "no fault of the plan: down: " in score.error
    assert [trace.id for trace in kept] == [score.trace_id]
    assert kept[0].spans[0].error in score.error


async def test_session_gives_no_prompt_after_a_failed_worker():
    assert await make_session(rounds=2).prompt(rollout(BROKEN)) is None


async def test_score_reports_steps_calls_workers_and_errors_of_the_plan():
    score = await make_session().score(rollout(CHECKED))
    assert (score.correct, score.steps, score.calls, score.topology) == (True, 2, 2, "-;0")
    assert score.workers == ("bob", "ada")
    assert score.finished
    unreadable = await make_session().score(rollout("model_id = [9]\nsubtasks = ['x']\naccess_list = [[]]"))
    assert "9" in unreadable.error


async def test_trace_id_depends_only_on_the_rollout_request():
    kept = []
    session = make_session(kept=kept)
    requests = [rollout(RIGHT), rollout(RIGHT), rollout(RIGHT, number=1), rollout(RIGHT, seed="1")]
    scores = [await session.score(request) for request in requests]
    assert [trace.id for trace in kept] == [score.trace_id for score in scores]
    assert [score.trace_id for score in scores] == [trace_id(request) for request in requests]
    assert len({trace.id for trace in kept}) == 3
    assert kept[2].metadata == {"task": "sums/6", "group": "0", "rollout": "1"}


@pytest.mark.parametrize("earlier", [(), (WRONG,)])
async def test_draft_in_a_truncated_thought_scores_0_under_the_same_trace_id(earlier):
    request = rollout(*earlier, "<think>Perhaps so:\n" + RIGHT)
    truncated = request.model_copy(update={"truncated": True})
    assert (await make_session(rounds=2).score(request)).reward == 1.0
    score = await make_session(rounds=2).score(truncated)
    assert (score.reward, score.finished) == (0.0, True)
    assert "cut off" in score.error
    assert score.trace_id == trace_id(request)


async def test_an_unknown_task_is_answered_with_the_nearest_name():
    with pytest.raises(
        ConfigError, match=r"None of the session's 3 tasks is 'sum/6'; did you mean 'sums/6'\?"
    ):
        await make_session().prompt(rollout(task="sum/6"))
    with pytest.raises(ConfigError, match="the first is 'sums/6'"):
        await make_session().score(rollout(RIGHT, task="weekdays"))


async def test_more_plans_than_rounds_are_refused():
    with pytest.raises(ConfigError, match="2 plans cannot be scored: this session has rounds = 1"):
        await make_session().score(rollout(RIGHT, ACCEPT))


async def test_session_digest_depends_only_on_scoring_settings():
    plain, same, other = make_session(), make_session(max_steps=5), make_session(max_steps=4)
    assert plain.info.digest == same.info.digest != other.info.digest
    assert plain.info.pool == ("ada", "bob", "down")
    assert len(plain.info.tasks) == 3


async def test_a_plan_with_partial_access_earns_nothing_under_all_or_none():
    chain = 'model_id = [1, 0]\nsubtasks = ["Guess.", "Multiply."]\naccess_list = [[], [0]]'
    session = make_session(prompt={"access": "all_or_none"})
    score = await session.score(rollout(chain))
    assert (score.reward, score.valid) == (0.0, False)
    assert score.error is not None
    assert 'Expected [] or ["all"] for step 1, found [0]' in score.error
    assert (await session.score(rollout(CHECKED))).reward == 1.0
    assert (await make_session().score(rollout(chain))).reward == 1.0
    messages = await session.prompt(rollout())
    assert messages is not None
    assert '[] for none, or ["all"] for all of them.' in messages[0].content


async def test_simulated_failures_hit_a_whole_group_and_drop_no_rollout():
    session = make_session(pool_sampling={"failure_probability": 0.5})
    rewards = {}
    for group in range(12):
        scores = [await session.score(rollout(RIGHT, seed=str(group), number=n)) for n in range(3)]
        (rewards[group],) = {score.reward for score in scores}
    assert set(rewards.values()) == {0.5, 1.0}
