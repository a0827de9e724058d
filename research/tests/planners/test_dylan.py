"""DyLAN asks only as many as needed, follows authors rather than places, and measures importance as by hand."""

import pytest

from planners.planner_teams import answered, called, team
from podium.planners.planner import PlanRequest
from podium.team import Runner
from podium.types import Budget, Question
from podium.workers.view import read_view
from podium_research.planners.dylan import DyLAN, MemberReply, importance_of
from podium_research.planners.rounds import question_random

FOUR = ("a", "b", "c", "d")


async def test_a_turn_ends_once_more_than_two_thirds_agree():
    pool = team(**{name: ["Answer: 4"] for name in FOUR})
    trace = await answered(DyLAN(FOUR), pool)
    assert trace.answer == "Answer: 4"
    assert [len(workers) for workers in called(trace)] == [3]  # The fourth is not asked.


async def test_dylan_asks_the_fourth_member_if_the_first_three_disagree():
    order = question_random(PlanRequest(Question(text="How many?"), ()), "dylan").sample(range(4), 4)
    replies = {FOUR[member]: ["Answer: 4"] for member in order}
    replies[FOUR[order[0]]] = ["Answer: 5"]
    trace = await answered(DyLAN(FOUR), team(**replies))
    assert [len(workers) for workers in called(trace)] == [3, 1]
    assert trace.answer == "Answer: 4"


def responses_shown(span):
    return [step.response for step in read_view(span.messages).earlier]


def disagreeing(ranking: str, **last: str):
    """Four workers that never agree. a, the first, also ranks before the third turn."""
    turns = {name: [f"Answer: {name}1", f"[[5, 3, 1, 1]]\nAnswer: {name}2"] for name in FOUR}
    for name, reply in last.items():
        turns[name].append(reply)
    turns["a"].insert(2, ranking)
    return team(**turns)


async def test_the_authors_of_the_two_best_replies_go_on_whatever_their_place():
    for first in range(1, 5):
        pool = disagreeing(f"[{first}, {first % 4 + 1}]", **dict.fromkeys(FOUR, "Answer: last"))
        trace = await answered(DyLAN(FOUR), pool)
        ranking = next(span for span in trace.spans if "[2, 1]" in span.subtask)
        shown = responses_shown(ranking)
        wanted = [shown[first - 1][-2], shown[first % 4][-2]]  # "... Answer: b2" is of b.
        assert sorted(called(trace)[-1]) == sorted(wanted)
        assert trace.answer == "Answer: last"


async def test_dylan_gives_an_answer_and_no_ranking_when_rounds_or_calls_end():
    planner = DyLAN(FOUR)
    for rounds in range(1, planner.rounds):
        trace = await answered(planner, disagreeing("[2, 1]"), rounds=rounds)
        assert "Answer:" in trace.answer
        assert trace.status == "ok"
        assert sum(planner.importance(trace).values()) > 0
    upto_ranking = Budget(rounds=planner.rounds, calls=11)
    trace = await Runner(planner, disagreeing("[2, 1]"), budget=upto_ranking).answer(
        Question(text="How many?")
    )
    assert trace.spans[-1].status == "refused"
    assert "Answer:" in trace.answer


async def test_dylan_with_two_rounds_gives_the_commonest_answer():
    order = question_random(PlanRequest(Question(text="How many?"), ()), "dylan").sample(range(4), 4)
    said = ("Answer: 4", "Answer: 4", "Answer: 6", "Answer: 5")
    pool = team(**{FOUR[member]: [reply] for member, reply in zip(order, said, strict=True)})
    assert (await answered(DyLAN(FOUR), pool, rounds=2)).answer == "Answer: 4"


async def test_dylan_importance_matches_a_hand_computation():
    # Two turns of three. Each reply is shown to all in an order that the subtask tells; each gives the first 5 points,
    # the second 3, the third 2.
    names = ("a", "b", "c")
    last = {"a": "5", "b": "6", "c": "6"}
    pool = team(**{name: [f"Answer: {name}", f"[[5, 3, 2]]\nAnswer: {last[name]}"] for name in names})
    planner = DyLAN(names, turns=2)
    trace = await answered(planner, pool)
    assert trace.answer == "[[5, 3, 2]]\nAnswer: 6"
    shown = [text[-1] for text in responses_shown(trace.rounds[1].spans[0])]
    # b and c agree with the answer and have 1/2 each; they pass on 0.5, 0.3 and 0.2 of it to what they saw.
    by_hand = dict(zip(shown, (0.5, 0.3, 0.2), strict=False))
    for name in ("b", "c"):
        by_hand[name] += 0.5
    assert planner.importance(trace) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (
            (
                ("Answer: 1", "Answer: 2", "Answer: 3", "Answer: 4"),
                (
                    "[[5, 3, 1, 1]]\nAnswer: 5",
                    "[[1, 1, 1, 1]]\nAnswer: 6",
                    "Answer: 7",
                    "[[9, 0, 0, 1]]\nAnswer: 8",
                ),
                ("[[4, 1, 5, 5]]\nAnswer: 9", "[[2, 5, 1, 2]]\nAnswer: 9"),
            ),
            (1.197222, 0.978333, 0.365, 0.459444),
        ),
        (
            (
                ("Answer: 1", "Answer: 2", "Answer: 3", "Answer: 4"),
                ("[[5, 3, 1, 1]]\nAnswer: 9", "[[1, 1, 2, 1]]\nAnswer: 9", "[[1, 2]]\nAnswer: 9"),
            ),
            (0.65, 0.583333, 0.583333, 0.183333),
        ),
    ],
)
def test_dylan_importance_equals_the_authors_code(turns, expected):
    """Figures of SALT-NLP/DyLAN (code/MMLU/LLMLP.py), run on these replies with its shuffles left out."""
    said: list[list[MemberReply]] = []
    for texts in turns:
        shown = said[-1] if said else []
        said.append([MemberReply.read(member, (0, 0), text, shown) for member, text in enumerate(texts)])
    found = importance_of(said, "9")
    assert [found[member] for member in range(4)] == pytest.approx(expected, abs=1e-6)


async def test_dylan_weighs_unscored_replies_equally_and_ignores_failed_replies():
    pool = team(a=["Answer: 1", "Answer: 3"], b=["Answer: 2", "Answer: 3"], c=[])
    planner = DyLAN(("a", "b", "c"), turns=2)
    trace = await answered(planner, pool)
    assert trace.answer == "Answer: 3"
    assert planner.importance(trace) == {"a": 1.0, "b": 1.0, "c": 0.0}
