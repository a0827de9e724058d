"""Baselines for recordings: what they plan, whom they refuse, and that those which learn do learn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podium.errors import ConfigError
from podium.planners import Cascade, Committee
from podium.planners.baseline import voting_step
from podium.planners.planner import EarlierRound, Planner, PlanRequest
from podium.recordings import RecordedResponse, Recording
from podium.team import Runner
from podium.text.answer import final_answer
from podium.trace import Trace, VoteCount
from podium.types import ANSWER_WHOLE_QUESTION, Budget, Profile, Question
from podium.workers import Pool, VoteWorker
from podium.workers.replay import ReplayWorker
from podium.workers.spec import ReplaySpec
from podium.workers.vote import NOTHING
from podium.workflow import Acceptance, Access, PlanRules, Step, Workflow, parse

MakeRecording = Callable[..., Recording]
PLAIN = "Give the most frequent answer."


def request(
    *names: str, text: str = "What is 6 times 7?", earlier_rounds: tuple[EarlierRound, ...] = ()
) -> PlanRequest:
    return PlanRequest(Question(text=text), tuple(Profile(name=name) for name in names), earlier_rounds)


async def steps_of(planner: Planner, *names: str) -> list[tuple[int, str, Access]]:
    plan = await planner.plan(request(*names))
    assert isinstance(plan.decision, Workflow)
    assert parse(plan.text, PlanRules(workers=len(names), max_steps=9)) == plan.decision
    return [(step.worker, step.subtask, step.access) for step in plan.decision.steps]


# --- plans -------------------------------------------------------------------------------------------------


async def test_a_committee_answers_side_by_side_and_the_tool_votes_on_all() -> None:
    assert await steps_of(Committee(("b", "a", "b")), "a", "vote", "b") == [
        (2, ANSWER_WHOLE_QUESTION, Access()),
        (0, ANSWER_WHOLE_QUESTION, Access()),
        (2, ANSWER_WHOLE_QUESTION, Access()),
        (1, PLAIN, Access(all=True)),
    ]


async def test_a_committee_of_one_needs_no_vote_even_weighted() -> None:
    for weights in ((), (2.0,)):
        assert await steps_of(Committee(("b",), weights), "a", "b") == [(1, ANSWER_WHOLE_QUESTION, Access())]


async def test_a_committees_weights_stand_in_the_votes_subtask_in_its_order() -> None:
    *_, vote = await steps_of(Committee(("b", "a"), (1.5, 0.25)), "a", "b", "vote")
    assert vote == (2, "Vote with the weights 1.5, 0.25.", Access(all=True))


async def test_a_cascade_begins_with_the_vote_of_its_first_workers() -> None:
    names = ("vote", "b", "c", "a")
    assert await steps_of(Cascade(("a", "b"), "c"), *names) == await steps_of(Committee(("a", "b")), *names)


@pytest.mark.parametrize(
    ("response", "votes", "decision"),
    [
        ("2 of 2 responses agree.\nAnswer: 4", VoteCount(agreeing=2, of=2), Acceptance()),
        (
            "1 of 2 responses agree.\nAnswer: 4",
            VoteCount(agreeing=1, of=2),
            Workflow((Step(2, ANSWER_WHOLE_QUESTION),)),
        ),
        (
            "1 of 1 responses agree.\nAnswer: 4",
            VoteCount(agreeing=1, of=1),
            Workflow((Step(2, ANSWER_WHOLE_QUESTION),)),
        ),
        (NOTHING, None, Workflow((Step(2, ANSWER_WHOLE_QUESTION),))),
        ("", None, Workflow((Step(2, ANSWER_WHOLE_QUESTION),))),
    ],
)
async def test_a_cascade_calls_the_expensive_worker_unless_all_agree(
    response: str, votes: VoteCount | None, decision: Workflow | Acceptance
) -> None:
    earlier_round = EarlierRound(Workflow((Step(0, ANSWER_WHOLE_QUESTION),)), response, votes)
    asked = request("a", "b", "c", "vote", earlier_rounds=(earlier_round,))
    plan = await Cascade(("a", "b"), "c").plan(asked)
    assert plan.decision == decision
    assert parse(plan.text, PlanRules(workers=4, later_round=True)) == decision


async def test_cascade_accepts_the_answer_of_its_expensive_worker() -> None:
    earlier_round = EarlierRound(
        Workflow((Step(0, ANSWER_WHOLE_QUESTION),)), "1 of 2 responses agree.\nAnswer: 4"
    )
    plan = await Cascade(("a", "b"), "c").plan(
        request("a", "b", "c", "vote", earlier_rounds=(earlier_round, earlier_round))
    )
    assert plan.decision == Acceptance()


@pytest.mark.parametrize(
    ("planner", "name"),
    [
        (Committee(("a", "b")), "committee:a+b"),
        (Committee(("a", "b", "a", "a")), "committee:3xa+b"),
        (Committee(("b", "a", "b"), (1, 2, 3)), "weighted-committee:2xb+a"),
        (Cascade(("a", "b"), "c"), "cascade:a+b>c"),
    ],
)
def test_name_of_a_committee_or_cascade_lists_its_members(planner: Planner, name: str) -> None:
    assert planner.name == name


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "planner",
    [
        Committee(("adda", "bob")),
        Committee(("adda",)),
        Cascade(("bob", "adda"), "bob"),
    ],
    ids=lambda planner: planner.name,
)
async def test_a_worker_that_the_pool_lacks_is_refused_with_the_nearest(planner: Planner) -> None:
    with pytest.raises(ConfigError, match="no worker named 'adda'; did you mean 'ada'"):
        await planner.plan(request("ada", "bob", "vote"))


async def test_a_cascade_without_its_expensive_worker_is_refused_when_it_plans() -> None:
    earlier_round = EarlierRound(
        Workflow((Step(0, ANSWER_WHOLE_QUESTION),)), "1 of 2 responses agree.\nAnswer: 4"
    )
    with pytest.raises(ConfigError, match="no worker named 'cyy'; did you mean 'cy'"):
        await Cascade(("ada", "bob"), "cyy").plan(
            request("ada", "bob", "cy", "vote", earlier_rounds=(earlier_round,))
        )


@pytest.mark.parametrize(
    "planner",
    [Committee(("ada", "bob")), Committee(("ada", "ada"), (1, 2)), Cascade(("ada", "bob"), "ada")],
    ids=lambda planner: planner.name,
)
async def test_committee_without_a_vote_tool_names_the_worker_to_add(planner: Planner) -> None:
    with pytest.raises(ConfigError, match='add a \\[\\[worker\\]\\] with name = "vote" and kind = "vote"'):
        await planner.plan(request("ada", "bob"))


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 2.0, 3.0)])
def test_weights_that_are_not_one_for_each_worker_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=f"of 2 workers has {len(weights)} weights; give one for each"):
        Committee(("ada", "bob"), weights)


def test_an_empty_committee_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 worker"):
        Committee(())


@pytest.mark.parametrize("weights", [(2.344, 1.172, 1.172), (0.0105, 12.5, 4.595), (1234.5, 1.0, 1.0)])
async def test_the_vote_gets_the_very_weights_that_were_chosen(weights: tuple[float, ...]) -> None:
    step = voting_step(request("vote").pool, weights)
    told = step.subtask.removeprefix("Vote with the weights ").removesuffix(".")
    assert [float(weight) for weight in told.split(", ")] == list(weights)


# --- cascades at work --------------------------------------------------------------------------------------

AGREED, SPLIT, SILENT = "Do ada and bob agree?", "Do they differ?", "Does bob say nothing?"
GIVEN = {
    AGREED: [
        RecordedResponse("ada", 0, "Answer: Yes."),
        RecordedResponse("bob", 0, "I think\nAnswer: yes"),
        RecordedResponse("cy", 0, "Answer: no"),
    ],
    SPLIT: [
        RecordedResponse("ada", 0, "Answer: 1"),
        RecordedResponse("bob", 0, "Answer: 2"),
        RecordedResponse("cy", 0, "Answer: 3"),
        RecordedResponse("cy", 1, "Answer: 4"),
    ],
    SILENT: [
        RecordedResponse("ada", 0, "Answer: 1"),
        RecordedResponse("bob", 0, ""),
        RecordedResponse("cy", 0, "Answer: 3"),
    ],
}


async def cascaded(make_recording: MakeRecording, text: str, rounds: int) -> Trace:
    recording = make_recording(GIVEN)
    replayed = [
        ReplayWorker(ReplaySpec(name=name, recording=recording.path), recording)
        for name in ("cy", "ada", "bob")
    ]
    pool = Pool([*replayed, VoteWorker()])
    runner = Runner(Cascade(("ada", "bob"), "cy"), pool, budget=Budget(rounds=rounds))
    return await runner.answer(Question(text=text), seed="0")


@pytest.mark.parametrize("rounds", [2, 3])
async def test_cascade_keeps_the_answer_of_agreeing_first_workers(
    make_recording: MakeRecording, rounds: int
) -> None:
    trace = await cascaded(make_recording, AGREED, rounds)
    assert (trace.status, final_answer(trace.answer or "")) == ("ok", "Yes.")
    assert [span.worker for span in trace.spans] == ["ada", "bob", "vote"]
    assert trace.rounds[-1].accepted


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("text", [SPLIT, SILENT])
async def test_cascade_answers_with_its_expensive_worker_if_others_disagree(
    make_recording: MakeRecording, text: str, rounds: int
) -> None:
    trace = await cascaded(make_recording, text, rounds)
    assert (trace.status, trace.answer) == ("ok", "Answer: 3")
    assert [span.worker for span in trace.spans] == ["ada", "bob", "vote", "cy"]
    assert [round_.accepted for round_ in trace.rounds] == [False, False, True][:rounds]


async def test_a_cascade_within_one_round_is_the_vote(make_recording: MakeRecording) -> None:
    for text, said in ((AGREED, "2 of 2 responses agree.\nAnswer: Yes."), (SPLIT, "1 of 2 responses agree.")):
        trace = await cascaded(make_recording, text, 1)
        assert trace.answer is not None
        assert trace.answer.startswith(said)
        assert [span.worker for span in trace.spans] == ["ada", "bob", "vote"]
