"""The leader's ledger decides who works, counts stalls, starts again, and takes an empty result for what it is."""

import json

from planners.planner_teams import answered, called, team
from podium.team import Runner
from podium.types import Budget, Question
from podium.workers.view import read_view
from podium_research.planners.magentic import Magentic

PLANNER = Magentic("lead", ("ada", "bob"))
START = ["facts", "plan"]


def ledger(speaker="ada", *, done=False, empty=False, loop=False, progress=True) -> str:
    return json.dumps(
        {
            "is_request_satisfied": {"reason": "...", "answer": done},
            "is_result_final_even_if_empty": empty,
            "is_in_loop": loop,
            "is_progress_being_made": progress,
            "next_speaker": {"reason": "...", "answer": speaker},
            "instruction_or_question": f"Do it, {speaker}.",
        }
    )


async def test_the_ledger_names_each_speaker_until_the_question_is_answered():
    pool = team(
        lead=[*START, f"Here it is: {ledger('bob')}", ledger("ada"), ledger(done=True), "Answer: 7"],
        ada=["seven"],
        bob=["six or seven"],
    )
    trace = await answered(PLANNER, pool)
    assert called(trace) == [["lead"] * 3, ["bob", "lead"], ["ada", "lead"], ["lead"]]
    assert [span.subtask for span in trace.spans if span.worker in ("ada", "bob")] == [
        "Do it, bob.",
        "Do it, ada.",
    ]
    shown = read_view(pool.named("ada").requests[0].messages).earlier
    assert [step.response for step in shown] == ["facts", "plan", "six or seven"]  # And no ledger.
    assert (trace.answer, trace.status) == ("Answer: 7", "ok")


async def test_after_more_than_three_stalls_the_leader_starts_again():
    stalls = [ledger(progress=False), ledger(loop=True), ledger(), ledger(progress=False), ledger(loop=True)]
    pool = team(
        lead=[
            *START,
            *stalls,
            ledger(progress=False),
            "new facts",
            "new plan",
            ledger(done=True),
            "Answer: 7",
        ],
        ada=["..."] * 5,
    )
    trace = await answered(PLANNER, pool)
    # Stalls: 1, 2, then progress takes one back (1), 2, 3, 4: more than three.
    assert called(trace) == [["lead"] * 3, *[["ada", "lead"]] * 5, ["lead"] * 3, ["lead"]]
    final = read_view(pool.named("lead").requests[-1].messages).earlier
    assert [step.response for step in final] == ["new facts", "new plan"]


async def test_magentic_counts_an_empty_right_result_as_an_answer():
    found = ledger(progress=False, empty=True)
    pool = team(lead=[*START, ledger("ada"), found, "There are none."], ada=["The search found nothing."])
    trace = await answered(PLANNER, pool)
    assert called(trace) == [["lead"] * 3, ["ada", "lead"], ["lead"]]
    assert trace.answer == "There are none."


async def test_a_ledger_that_cannot_be_read_is_asked_for_three_times():
    pool = team(lead=[*START, "no object", ledger("eve"), "{", "Answer: 1"])
    trace = await answered(PLANNER, pool)
    assert called(trace) == [["lead"] * 3, ["lead"], ["lead"], ["lead"]]
    assert "named no worker of the team" in pool.named("lead").requests[3].view.subtask
    assert trace.answer == "Answer: 1"


async def test_the_budgets_last_round_answers_whatever_the_ledger_says():
    pool = team(lead=[*START, ledger(), ledger(), "Answer: 2"], ada=["...", "..."])
    assert (await answered(PLANNER, pool, rounds=3)).answer == "Answer: 2"
    assert (await answered(PLANNER, team(lead=["Answer: 3"]), rounds=1)).answer == "Answer: 3"


async def test_if_the_leader_cannot_answer_the_latest_work_is_the_answer():
    working = [*START, ledger("ada"), ledger(done=True)]
    trace = await answered(PLANNER, team(lead=working, ada=["Answer: 7"]))
    assert called(trace) == [["lead"] * 3, ["ada", "lead"], ["lead"]]
    assert trace.answer == "Answer: 7"
    pool = team(lead=[*START, *[ledger("ada")] * 9], ada=["Answer: 6", "Answer: 7"])
    budget = Budget(rounds=PLANNER.rounds, calls=7)
    trace = await Runner(PLANNER, pool, budget=budget).answer(Question(text="How many?"))
    assert trace.answer == "Answer: 7"
