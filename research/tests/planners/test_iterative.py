"""Candidates are written in sight of the best, the worst and the critique; the best of all iterations is the answer."""

import json

from planners.planner_teams import answered, called, team
from podium.errors import WorkerError
from podium.planners.planner import EarlierRound, PlanRequest
from podium.types import Profile, Question
from podium.workers.view import read_view
from podium.workflow import Acceptance, Access, Step, Workflow
from podium_research.planners.iterative import Iterative

PLANNER = Iterative("ada", "judge", candidates=2, iterations=3)


def verdict(*scores: float) -> str:
    return json.dumps({"scores": scores, "critique": f"critique of {scores}"})


async def test_the_running_best_is_the_answer_and_not_the_last():
    pool = team(ada=["a", "b", "c", "d", "e", "f"], judge=[verdict(2, 5), verdict(9, 1), verdict(3, 8)])
    trace = await answered(PLANNER, pool)
    assert trace.answer == "c"
    assert trace.rounds[-1].plan.accepted_step == (1, 0)
    assert called(trace) == [["ada", "ada", "judge"]] * 3
    shown = [[s.response for s in read_view(r.messages).earlier] for r in pool.named("ada").requests[::2]]
    assert shown == [[], ["b", "a", verdict(2, 5)], ["c", "d", verdict(9, 1)]]


async def test_iterative_planner_stops_at_a_perfect_score():
    trace = await answered(PLANNER, team(ada=["a", "b"], judge=[verdict(3, 10)]))
    assert (trace.answer, called(trace)) == ("b", [["ada", "ada", "judge"]])


async def test_judge_scores_match_shown_candidates_and_skip_unread_verdicts():
    lost = WorkerError("It is down.", kind="server_error")
    pool = team(ada=["a", lost, "c", "d", "e", "f"], judge=[verdict(4), "fine!", verdict(11, 2)])
    trace = await answered(PLANNER, pool)
    assert trace.rounds[-1].plan.accepted_step == (0, 0)


async def test_iterative_planner_calls_one_worker_if_only_one_round_is_left():
    trace = await answered(PLANNER, team(ada=["a"], judge=[]), rounds=1)
    assert (trace.answer, called(trace)) == ("a", [["ada"]])


async def test_iterative_planner_continues_after_rewording_but_not_new_steps():
    async def next_plan(*steps: Step):
        pool = tuple(Profile(name=name) for name in ("ada", "judge"))
        earlier_round = EarlierRound(
            Workflow(steps), verdict(9, 2), responses=("a", "b", verdict(9, 2))[-len(steps) :]
        )
        request = PlanRequest(Question(text="How many?"), pool, (earlier_round,), rounds_left=3)
        return await PLANNER.plan(request)

    reworded = await next_plan(Step(0, "Try."), Step(1, "Try."), Step(1, "Judge.", Access(all=True)))
    assert reworded.visible_responses == ((0, 0), (0, 1), (0, 2))
    assert (await next_plan(Step(0, "Try."))).decision == Acceptance()
