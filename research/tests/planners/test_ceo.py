"""The leader sets the width and the tokens of each turn, experts discuss until they agree, and the leader judges."""

import json

from planners.planner_teams import answered, called, team
from podium.workers.view import read_view
from podium_research.planners.ceo import CEO

PLANNER = CEO("lead", ("ada", "bob", "eve"))


def decision(number: int, tokens: int, decision: str = "Continue") -> str:
    return json.dumps(
        {
            "decision": decision,
            "recruit_number": number,
            "direction": "Mind the sign.",
            "maximum_tokens": tokens,
        }
    )


EXPERTS = '{"experts": ["algebra", "numbers", "proofs"]}'
WRONG, RIGHT = '{"correct": 0, "advice": "Count again."}', '{"correct": 1, "advice": ""}'


async def test_the_leader_decides_how_many_experts_work_and_their_tokens():
    pool = team(
        lead=[decision(3, 2048), EXPERTS, RIGHT],
        ada=["Answer: 1"],
        bob=["Fine. [Agree]"],
        eve=["Yes. [agree]"],
    )
    trace = await answered(PLANNER, pool)
    assert called(trace) == [["lead", "lead"], ["ada", "bob", "eve"], ["lead"]]
    discussion = trace.rounds[1].spans
    assert [span.max_tokens for span in discussion] == [2048, 2048, 2048, None]  # The last is the vote.
    assert [pool.named(name).requests[0].options.max_tokens for name in ("ada", "bob", "eve")] == [2048] * 3
    assert [span.subtask.splitlines()[0][28:] for span in discussion[:3]] == ["algebra", "numbers", "proofs"]
    assert trace.rounds[-1].plan.accepted_step == (1, 0)
    assert trace.answer == "Answer: 1"


async def test_experts_discuss_until_they_agree_and_restart_after_a_wrong_answer():
    pool = team(
        lead=[decision(2, 0), EXPERTS, WRONG, decision(1, 4096), EXPERTS, RIGHT],
        ada=["Answer: 1", "Answer: 2", "Answer: 3"],
        bob=["No. [Disagree]", "I said [Disagree], now [Agree]"],
    )
    trace = await answered(PLANNER, pool)
    assert called(trace) == [
        ["lead"] * 2,
        ["ada", "bob"],
        ["ada", "bob"],
        ["lead"],
        ["lead"] * 2,
        ["ada"],
        ["lead"],
    ]
    shown = [[step.response for step in read_view(r.messages).earlier] for r in pool.named("ada").requests]
    assert shown == [
        [],
        ["Answer: 1", "No. [Disagree]"],
        ["Answer: 2", "I said [Disagree], now [Agree]", WRONG],
    ]
    assert [span.max_tokens for span in trace.spans if span.worker == "ada"] == [None, None, 4096]
    assert trace.answer == "Answer: 3"


async def test_the_leader_may_stop_and_a_short_budget_still_gives_a_solution():
    pool = team(
        lead=[decision(1, 0), "who?", WRONG, decision(1, 0, "Stop"), EXPERTS],
        ada=["Answer: 1"],
        bob=[],
        eve=[],
    )
    trace = await answered(PLANNER, pool)
    assert (trace.answer, trace.rounds[-1].plan.accepted_step) == ("Answer: 1", (1, 0))
    pool = team(lead=[decision(2, 0), EXPERTS], ada=["Answer: 4"], bob=[], eve=[])
    assert (await answered(PLANNER, pool, rounds=2)).answer == "Answer: 4"
