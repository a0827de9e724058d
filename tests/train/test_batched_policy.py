"""The requests of a batch of rollouts are completed together, round after round, and each gets its own completion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_run import ACCEPTANCE, PLANS, draw

from podium.planner import Outcome, Planner, PlanRequest
from podium.rollout import Scorer
from podium.train.rollout_sampler import BatchedPolicy, SampleRequest
from podium.types import Budget, Profile, Question
from podium.workflow import Acceptance, PlanError, Step, Workflow

REQUEST = PlanRequest(Question(text="add 1 2"), (Profile(name="ada"), Profile(name="bob")))
LATER = PlanRequest(REQUEST.question, REQUEST.pool, outcomes=(Outcome(Workflow((Step(0, "Add."),)), "4"),))


class Policy:
    """Answers each that asks with its number and the round, and keeps who requests together."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, requests: Sequence[SampleRequest]) -> list[str]:
        self.batches.append([number for number, _ in requests])
        return [f"to {number} in round {len(self.batches)}" for number, _ in requests]


async def ask(planner: Planner, *, times: int, pause: float = 0.0) -> list[str]:
    """A rollout of so many rounds, which works for a while before each."""
    texts = []
    for _ in range(times):
        await asyncio.sleep(pause)
        texts.append((await planner.plan(REQUEST)).text)
    return texts


@given(st.lists(st.integers(0, 4), max_size=6))
def test_each_round_is_one_batch_of_all_that_still_run_and_each_gets_its_own_completions(
    rounds: list[int],
) -> None:
    policy = Policy()
    done = asyncio.run(BatchedPolicy(policy).run([partial(ask, times=times) for times in rounds]))
    assert policy.batches == [
        [number for number, times in enumerate(rounds) if times > round_]
        for round_ in range(max(rounds, default=0))
    ]
    assert done == [
        [f"to {number} in round {round_ + 1}" for round_ in range(times)]
        for number, times in enumerate(rounds)
    ]


async def test_no_request_is_completed_before_the_slowest_rollout_has_made_its_own_or_ended() -> None:
    policy = Policy()
    slow_first = [partial(ask, times=2, pause=pause) for pause in (0.03, 0.0, 0.01)]

    async def ends_late(planner: Planner) -> list[str]:
        await asyncio.sleep(0.05)
        assert not policy.batches
        return []

    done = await BatchedPolicy(policy).run([*slow_first, ends_late])
    assert policy.batches == [[0, 1, 2], [0, 1, 2]]
    assert done == [[f"to {number} in round {round_}" for round_ in (1, 2)] for number in range(3)] + [[]]


@pytest.mark.parametrize(
    ("plan_request", "text", "decision"),
    [
        (REQUEST, PLANS[1], Workflow((Step(1, "Add."),))),
        (LATER, PLANS[1], Workflow((Step(1, "Add."),))),
        (LATER, ACCEPTANCE, Acceptance()),
        (REQUEST, ACCEPTANCE, "empty_plan"),
        (REQUEST, PLANS[2], "unknown_worker"),
        (PlanRequest(REQUEST.question, REQUEST.pool, max_steps=1), PLANS[3], "too_many_steps"),
    ],
)
async def test_a_text_is_read_as_a_plan_for_the_request_that_it_completes(
    plan_request: PlanRequest, text: str, decision: Workflow | Acceptance | str
) -> None:
    (plan,) = await BatchedPolicy(lambda requests: [text]).run([lambda planner: planner.plan(plan_request)])
    assert plan.text == text
    found = plan.decision.kind if isinstance(plan.decision, PlanError) else plan.decision
    assert found == decision


async def test_ordinary_questions_are_planned_round_after_round_and_some_end_early() -> None:
    scorer = Scorer(budget=Budget(rounds=3))
    seen: list[list[tuple[int, int]]] = []

    def answer(requests: Sequence[SampleRequest]) -> list[str]:
        seen.append([(number, len(request.outcomes)) for number, request in requests])
        # Rollout 0 writes no plan, rollout 1 accepts what it has, rollout 2 plans as long as it may.
        return [
            {0: "no plan", 1: ACCEPTANCE if request.outcomes else PLANS[1]}.get(n, PLANS[1])
            for n, request in requests
        ]

    task, pool = draw(0)[0]
    rollouts = await BatchedPolicy(answer).run(
        [partial(scorer.roll, task=task, pool=pool, seed=f"{number}") for number in range(3)]
    )
    assert seen == [[(0, 0), (1, 0), (2, 0)], [(1, 1), (2, 1)], [(2, 2)]]
    assert [len(rollout.trace.rounds) for rollout in rollouts] == [1, 2, 3]
    assert [rollout.trace.rounds[-1].accepted for rollout in rollouts] == [False, True, False]
    assert [rollout.trace.calls for rollout in rollouts] == [0, 1, 3]


async def gives_up(planner: Planner, *, then: int) -> list[str]:
    """Waits for an answer for a moment, and then asks again so often, as patiently as others."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await planner.plan(REQUEST)
    return await ask(planner, times=then)


async def test_a_rollout_that_stops_waiting_and_ends_holds_up_nothing_and_gets_no_completion() -> None:
    policy = Policy()
    async with asyncio.timeout(20):
        done = await BatchedPolicy(policy).run(
            [partial(gives_up, then=0), partial(ask, times=2, pause=0.05), partial(gives_up, then=0)]
        )
    assert policy.batches == [[1], [1]]
    assert done == [[], ["to 1 in round 1", "to 1 in round 2"], []]


async def test_a_rollout_that_stops_waiting_and_requests_again_is_completed_once_with_the_others() -> None:
    policy = Policy()
    async with asyncio.timeout(20):
        done = await BatchedPolicy(policy).run([partial(gives_up, then=1), partial(ask, times=1, pause=0.05)])
    assert policy.batches == [[0, 1]]
    assert done == [["to 0 in round 1"], ["to 1 in round 1"]]


async def fails(planner: Planner) -> list[str]:
    await planner.plan(REQUEST)
    raise LookupError("of a rollout")


def no_answer(requests: Sequence[SampleRequest]) -> list[str]:
    raise LookupError("of the policy")


@pytest.mark.parametrize(
    ("answer", "rollout", "message"),
    [(Policy(), fails, "of a rollout"), (no_answer, partial(ask, times=1), "of the policy")],
)
async def test_what_stops_a_batch_comes_out_as_it_was_raised_and_ends_the_other_rollouts(
    answer: Callable[[Sequence[SampleRequest]], list[str]],
    rollout: Callable[[Planner], Awaitable[list[str]]],
    message: str,
) -> None:
    ended = []

    async def other(planner: Planner) -> list[str]:
        try:
            return await ask(planner, times=9)
        finally:
            ended.append(planner)

    with pytest.raises(LookupError, match=f"^{message}$"):
        await BatchedPolicy(answer).run([other, rollout, other])
    assert len(ended) == 2
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_policy_that_gives_too_few_or_too_many_completions_is_an_error(count: int) -> None:
    with pytest.raises(ValueError, match=r"zip\(\)"):
        await BatchedPolicy(lambda requests: ["text"] * count).run([partial(ask, times=1)] * 2)


async def test_a_batch_that_is_cancelled_leaves_no_rollout_running() -> None:
    policy = Policy()
    serving = asyncio.ensure_future(
        BatchedPolicy(policy).run([partial(ask, times=1), partial(ask, times=1, pause=60)])
    )
    await asyncio.sleep(0.01)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert not policy.batches
    assert len(asyncio.all_tasks()) == 1
