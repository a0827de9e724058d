"""Early stopping: a vote says what it would have said, and no more is asked than that takes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podium.errors import WorkerError
from podium.executor import Execution, ExecutionSettings, RoundContext
from podium.executor.early_stopping import cheapest_first
from podium.text.answer import final_answer, normalise
from podium.trace import Plan, Reply, RoundTrace, Span
from podium.types import Budget, Message, Price, Profile, Question, Rating
from podium.workers.base import Request, Worker
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VoteWorker, winner_is_certain
from podium.workflow import Acceptance, Access, Step, Workflow

BROKEN = WorkerError("It broke.", kind="status")
STOPPING = ExecutionSettings(first_wait_s=0.001, early_stop=True)
ASKING_ALL = ExecutionSettings(first_wait_s=0.001)


def voters(answers: list[str | None], prices: list[int]) -> list[ScriptedWorker]:
    """One for each answer, or None if it fails."""
    return [
        ScriptedWorker(
            str(number),
            [BROKEN if answer is None else f"Answer: {answer}"],
            profile=Profile(name=str(number), price=Price(output=price)),
        )
        for number, (answer, price) in enumerate(zip(answers, prices, strict=True))
    ]


def ballot(count: int, subtask: str = "Vote.") -> Workflow:
    """So many workers side by side, and a vote on them all."""
    steps = [Step(number, "Answer.") for number in range(count)]
    return Workflow((*steps, Step(count, subtask, Access(steps=tuple(range(count))))))


def asked(execution: Execution) -> list[int]:
    """Workers that were called, the vote left out, in the order in which they were."""
    called = [span for span in execution.spans[:-1] if span.attempts]
    return [span.position for span in sorted(called, key=lambda span: (span.started_s, span.position))]


def said(span: Span) -> str | None:
    answer = None if span.response is None else final_answer(span.response)
    return None if answer is None else normalise(answer)


@given(
    answers=st.lists(st.sampled_from(["a", "b", "c", "A.", None]), min_size=1, max_size=6),
    data=st.data(),
)
async def test_early_stopped_vote_equals_the_full_vote(make_context, answers, data) -> None:
    count = len(answers)
    prices = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    weights = data.draw(
        st.none() | st.lists(st.sampled_from(["0", "0.5", "1", "1.5", "3"]), min_size=count, max_size=count)
    )
    plan = ballot(count, "Vote." if weights is None else f"Vote with the weights {', '.join(weights)}.")
    runs = []
    for how in (ASKING_ALL, STOPPING):
        execution = Execution(make_context([*voters(answers, prices), VoteWorker("v")], settings=how), plan)
        await execution.run()
        runs.append(execution)
    everybody, stopped = runs
    assert said(stopped.spans[-1]) == said(everybody.spans[-1])
    assert stopped.spans[-1].status == everybody.spans[-1].status
    assert len(asked(everybody)) == count
    for span in stopped.spans[:-1]:
        if not span.attempts:
            assert (span.status, span.response) == ("skipped", None)
            assert span.error == "It was not called: no answer of it could change the vote."


@st.composite
def plans_with_votes(draw: st.DrawFn) -> Workflow:
    """Workers 0 to 3 answer, worker 4 votes; anybody may read anything earlier, and the last votes on what it reads."""
    count = draw(st.integers(2, 8))
    steps = []
    for position in range(count):
        seen = draw(st.sets(st.sampled_from(range(position)), max_size=5)) if position else set()
        worker = draw(st.integers(0, 4)) if seen and position < count - 1 else draw(st.integers(0, 3))
        steps.append(Step(worker, "Do it.", Access(steps=tuple(sorted(seen)))))
    return Workflow((*steps[:-1], Step(4, "Vote.", Access(all=draw(st.booleans()), steps=(0,)))))


@given(
    plan=plans_with_votes(), answers=st.lists(st.sampled_from("abc"), min_size=4, max_size=4), data=st.data()
)
async def test_early_stopping_does_not_change_the_result_of_any_plan(
    make_context, plan, answers, data
) -> None:
    prices = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    spans = []
    for how in (ASKING_ALL, STOPPING):
        workers = [
            ScriptedWorker(
                str(number),
                {"": f"Answer: {answer}"},
                profile=Profile(name=str(number), price=Price(output=price)),
            )
            for number, (answer, price) in enumerate(zip(answers, prices, strict=True))
        ]
        execution = Execution(make_context([*workers, VoteWorker("v")], settings=how), plan)
        await execution.run()
        spans.append(execution.spans)
    everybody, stopped = spans
    assert said(stopped[-1]) == said(everybody[-1])
    for one, other in zip(everybody, stopped, strict=True):
        assert other.status == one.status or (one.status, other.status) == ("done", "skipped")
        if other.status == "done":
            assert said(other) == said(one)


@given(
    responses=st.lists(st.none() | st.sampled_from(["Answer: a", "Answer: b", ""]), min_size=1, max_size=5),
    data=st.data(),
)
@example(responses=["Answer: a", None], data=None)
async def test_vote_is_certain_exactly_if_no_further_answer_can_change_it(responses, data) -> None:
    """Every way to fill in what is to come is tried."""
    weights = [1.0] * len(responses)
    if data is not None:
        weights = data.draw(
            st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(responses), max_size=len(responses))
        )
    subtask = f"Vote with the weights {', '.join(f'{weight:g}' for weight in weights)}."
    results = {_winner(filled, weights) for filled in _fillings(responses)}
    assert winner_is_certain(subtask, responses) == (len(results) == 1)


def _fillings(responses: list[str | None]) -> list[list[str]]:
    made: list[list[str]] = [[]]
    for response in responses:
        options = ["Answer: a", "Answer: b", "Answer: c", "Answer: d", ""] if response is None else [response]
        made = [[*earlier, option] for earlier in made for option in options]
    return made


def _winner(responses: list[str], weights: list[float]) -> str | None:
    votes: dict[str, float] = {}
    for response, weight in zip(responses, weights, strict=True):
        if response:
            votes[response] = votes.get(response, 0.0) + weight
    return max(votes, key=lambda answer: votes[answer], default=None)


@pytest.mark.parametrize(
    ("answers", "prices", "expected"),
    [
        ("aab", [1, 1, 1], [0, 1]),
        ("abb", [1, 1, 1], [0, 1, 2]),
        ("aab", [9, 1, 2], [0, 1, 2]),
        ("baa", [9, 1, 2], [1, 2]),
        ("aaaa", [5, 1, 1, 5], [1, 2, 0]),  # two of four would tie, and the first shown wins ties
        ("aaaaa", [5, 4, 3, 2, 1], [2, 3, 4]),
        ("aabbb", [1, 1, 1, 1, 1], [0, 1, 2, 3, 4]),
        ("a", [1], [0]),
    ],
)
async def test_vote_calls_cheapest_workers_first_and_stops_once_certain(
    make_context, answers: str, prices: list[int], expected: list[int]
) -> None:
    workers = [*voters(list(answers), prices), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING), ballot(len(answers)))
    await execution.run()
    assert sorted(asked(execution)) == sorted(expected)
    assert said(execution.spans[-1]) == max(
        answers, key=lambda answer: (answers.count(answer), -answers.index(answer))
    )


async def test_the_workers_of_a_turn_are_called_at_the_same_time(make_context) -> None:
    """Two who may decide it between them do not wait for each other."""
    both = asyncio.Barrier(2)

    class Waiting(Worker):
        def __init__(self, name: str) -> None:
            self.profile = Profile(name=name)

        async def answer(self, request: Request) -> Reply:
            await both.wait()
            return await ScriptedWorker(self.profile.name, ["Answer: a"]).answer(request)

    workers = [Waiting("0"), Waiting("1"), Waiting("2"), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING), ballot(3))
    await asyncio.wait_for(execution.run(), 5)
    assert asked(execution) == [0, 1]


# Step 0 is the dearest, and read by step 1 as well as by the vote: it is heard before the cheaper ones.
READ_BY_TWO = (
    Step(0, "Answer."),
    Step(1, "Check.", Access(steps=(0,))),
    Step(2, "Answer."),
    Step(3, "Answer."),
    Step(4, "Vote.", Access(steps=(0, 2, 3))),
    Step(4, "Vote.", Access(steps=(1, 4))),
)
# Step 2 prepares step 3, which costs more than the others, and waits for its turn.
PREPARED = (
    Step(0, "Answer."),
    Step(1, "Answer."),
    Step(2, "Prepare."),
    Step(3, "Answer.", Access(steps=(2,))),
    Step(4, "Vote.", Access(steps=(0, 1, 3))),
)
# Two votes of three and one more worker: if the cheaper two agree, the other vote's are never asked.
VOTE_OF_VOTES = (
    *(Step(number, "Answer.") for number in range(3)),
    Step(5, "Vote.", Access(steps=(0, 1, 2))),
    Step(3, "Answer."),
    Step(4, "Answer."),
    Step(5, "Vote.", Access(steps=(3, 4, 5))),
)
EXPLAINED = (*ballot(3).steps[:3], Step(4, "Vote.", Access(all=True)), Step(3, "Explain.", Access(all=True)))


@pytest.mark.parametrize(
    ("steps", "answers", "prices", "skipped", "answer"),
    [
        pytest.param(
            READ_BY_TWO, "abaa", [9, 1, 1, 1], {3}, "b", id="a step that another reads is not put off"
        ),
        pytest.param(
            PREPARED, "aaxb", [1, 1, 1, 5], {2, 3}, "a", id="what only a skipped step needs is skipped"
        ),
        pytest.param(PREPARED, "abxb", [1, 1, 1, 5], set(), "b", id="what a step needs is done"),
        pytest.param(VOTE_OF_VOTES, "aaabb", [1] * 5, {2}, "b", id="a vote over votes"),
        pytest.param(EXPLAINED, "aabc", [1] * 4, set(), "c", id="a vote that a worker reads"),
    ],
)
async def test_only_steps_that_decide_nothing_are_skipped(  # noqa: PLR0917
    make_context, steps: tuple[Step, ...], answers: str, prices: list[int], skipped: set[int], answer: str
) -> None:
    workers = [*voters(list(answers), prices), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING), Workflow(steps))
    await execution.run()
    expected = ["skipped" if position in skipped else "done" for position in range(len(steps))]
    assert [span.status for span in execution.spans] == expected
    assert said(execution.spans[-1]) == answer


async def test_vote_counts_the_answer_of_the_previous_round(make_context) -> None:
    plan = Workflow((Step(0, "Answer."), Step(1, "Answer."), Step(2, "Vote.", Access(all=True))))
    workers = [*voters(["a", "b"], [1, 2]), VoteWorker("v")]
    asked_twice = make_context(workers, settings=STOPPING, budget=Budget(rounds=2))
    execution = Execution(asked_twice, plan, RoundContext(1, "Answer: a"))
    await execution.run()
    assert [span.status for span in execution.spans] == ["done", "skipped", "done"]


async def test_if_another_round_may_follow_all_workers_are_called(make_context) -> None:
    """A planner that plans again looks at how many agree."""
    for rounds, skipped in ((1, ["skipped"]), (2, [])):
        workers = [*voters(["a", "a", "a"], [1, 1, 1]), VoteWorker("v")]
        execution = Execution(
            make_context(workers, settings=STOPPING, budget=Budget(rounds=rounds)), ballot(3)
        )
        await execution.run()
        assert [span.status for span in execution.spans if span.status != "done"] == skipped


async def test_early_stopping_is_fast_on_sixty_fully_connected_steps(make_context) -> None:
    """Each of 60 steps reads all before it, and the last vote leaves out what it can."""
    steps = [Step(position % 3, "Do it.", Access(all=True)) for position in range(60)]
    workers = [
        *(
            ScriptedWorker(str(number), {"": "Answer: a"}, profile=Profile(name=str(number)))
            for number in range(3)
        ),
        VoteWorker("v"),
    ]
    plan = Workflow((*steps, Step(3, "Vote.", Access(all=True))))
    execution = Execution(make_context(workers, settings=STOPPING), plan)
    await execution.run()
    assert execution.spans[-1].response == "59 of 59 responses agree.\nAnswer: a"


async def test_skipped_step_stays_skipped_after_a_timeout(make_context) -> None:
    """Step 4 is certain after two of three; step 0, whom the last vote hears beside it, hangs until the time is up."""

    class Endless(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    plan = Workflow(
        (
            *(Step(number, "Answer.") for number in range(4)),
            Step(5, "Vote.", Access(steps=(1, 2, 3))),
            Step(4, "Answer."),
            Step(5, "Vote.", Access(steps=(0, 4, 5))),
        )
    )
    workers = [Endless("free", []), *voters(["a", "a", "a", "a"], [1, 1, 1, 1]), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING, budget=Budget(seconds=0.2)), plan)
    await execution.run()
    statuses = [span.status for span in execution.spans]
    assert statuses == ["cancelled", "done", "done", "skipped", "done", "refused", "refused"]


async def test_vote_calls_all_workers_if_chat_history_counts_as_votes(make_context) -> None:
    past = (Message(role="user", content="And 1 + 1?"), Message(role="assistant", content="Answer: b"))
    question = Question(text="What is 2 + 2?", history=past)
    workers = [*voters(["a", "a", "b"], [1, 1, 1]), VoteWorker("v")]
    how = replace(STOPPING, layout="chat")
    execution = Execution(make_context(workers, settings=how, question=question), ballot(3))
    await execution.run()
    assert asked(execution) == [0, 1, 2]


async def test_a_step_that_waits_when_the_money_ends_is_refused_and_not_skipped(make_context) -> None:
    workers = [*voters(["a", "b", "a"], [1, 1, 1]), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING, budget=Budget(calls=2)), ballot(3))
    await execution.run()
    assert [span.status for span in execution.spans[:3]] == ["done", "done", "refused"]


async def test_cancelling_the_caller_cancels_deferred_steps(make_context) -> None:
    both = asyncio.Barrier(3)

    class Endless(ScriptedWorker):
        async def answer(self, request: Request) -> Reply:
            await both.wait()
            await asyncio.Event().wait()
            raise AssertionError

    workers = [Endless("0", []), Endless("1", []), Endless("2", []), VoteWorker("v")]
    execution = Execution(make_context(workers, settings=STOPPING), ballot(3))
    running = asyncio.create_task(execution.run())
    await both.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [span.status for span in execution.spans] == ["cancelled"] * 4


def test_cheapest_first_uses_measured_costs_or_else_listed_prices() -> None:
    def profile(price: float, cost: float | None) -> Profile:
        rating = None if cost is None else Rating(cluster="k", accuracy=0.5, cost_usd=cost, questions=9)
        return Profile(name="x", price=Price(input=price, output=price), rating=rating)

    assert cheapest_first([profile(1, 0.3), profile(2, 0.2), profile(3, 0.1)]) == [2, 1, 0]
    assert cheapest_first([profile(3, 0.3), profile(2, None), profile(2, 0.1)]) == [1, 2, 0]


async def test_latency_of_a_deferred_step_includes_the_steps_it_waited_for(make_context) -> None:
    took = {}
    for how in (ASKING_ALL, STOPPING):
        workers = [*voters(["a", "b", "c"], [3, 2, 1]), VoteWorker("v")]
        execution = Execution(make_context(workers, settings=how), ballot(3))
        await execution.run()
        claims = zip(execution.spans, (3.0, 1.0, 2.0, 0.0), strict=True)
        spans = tuple(
            span.model_copy(update={"reply": replace(span.reply, latency_s=claimed)})
            for span, claimed in claims
        )
        took[how] = RoundTrace(plan=Plan("", Acceptance()), spans=spans).critical_path_s
    # The second and the third are the cheapest and disagree, so the first is asked after them.
    assert [span.waited for span in execution.spans] == [(1, 2), (), (), ()]
    assert took == {ASKING_ALL: 3.0, STOPPING: 5.0}


async def test_step_read_only_by_a_deferred_step_is_deferred_too(make_context) -> None:
    workers = [*voters(["a", "b", "c"], [1, 1, 5]), ScriptedWorker("first", ["A hint."]), VoteWorker("v")]
    steps = (
        Step(3, "Give a hint."),
        Step(0, "Answer."),
        Step(1, "Answer."),
        Step(2, "Answer.", Access(steps=(0,))),
        Step(4, "Vote.", Access(steps=(1, 2, 3))),
    )
    execution = Execution(make_context(workers, settings=STOPPING), Workflow(steps))
    await execution.run()
    assert [span.waited for span in execution.spans] == [(1, 2), (), (), (1, 2), ()]
