"""Answers that many share stay, the others are revised in order, and the answer needs no further call."""

from planners.planner_teams import answered, called, team
from podium.workers.view import read_view
from podium_research.planners.selforg import SelfOrg

FOUR = ("a", "b", "c", "d")


def shown(pool, name: str) -> list[str]:
    return [step.response for step in read_view(pool.named(name).requests[-1].messages).earlier]


async def test_selforg_member_revises_after_reading_stronger_members():
    pool = team(
        a=["Answer: 1", "Answer: 2"], b=["Answer: 2"], c=["Answer: 2"], d=["Answer: 4", "Yes.\nAnswer: 2"]
    )
    trace = await answered(SelfOrg(FOUR), pool)
    assert called(trace) == [["a", "b", "c", "d"], ["a", "d"]]
    assert shown(pool, "a") == ["Answer: 2", "Answer: 2"]
    assert shown(pool, "d") == ["Answer: 2", "Answer: 2", "Answer: 2"]  # The last is the revised one of a.
    assert (trace.answer, trace.rounds[-1].plan.accepted_step) == ("Answer: 2", (1, 0))


async def test_selforg_revises_twice_at_most_and_failed_revisions_keep_answers():
    pool = team(a=["Answer: 1"] * 3, b=["Answer: 2"] * 3, c=["Answer: 1"])
    trace = await answered(SelfOrg(("a", "b", "c")), pool)
    assert called(trace) == [["a", "b", "c"], ["b"], ["b"]]
    assert trace.answer == "Answer: 1"
    pool = team(a=["Answer: 1"], b=["Answer: 2"], c=["Answer: 1"])
    assert (await answered(SelfOrg(("a", "b", "c")), pool)).answer == "Answer: 1"


async def test_selforg_does_not_revise_if_members_agree_at_once():
    pool = team(a=["Answer: 1"], b=["Answer: 1"])
    assert called(await answered(SelfOrg(("a", "b")), pool)) == [["a", "b"]]
    pool = team(a=["Answer: 1"], b=["Answer: 2"], c=["Answer: 2"])
    assert (await answered(SelfOrg(("a", "b", "c")), pool, rounds=1)).answer.endswith("Answer: 2")
