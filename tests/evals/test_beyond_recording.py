"""How far figures go beyond a recording: rewritten subtasks and sight of others' work, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.evals import Evaluation, evaluate
from podium.planners import Committee, Constant
from podium.planners.controls import CHECK
from podium.planners.planner import PrewrittenPlans
from podium.recordings import Recording
from podium.team import Runner
from podium.team.team_worker import TeamWorker
from podium.trace import Plan
from podium.types import ANSWER_WHOLE_QUESTION, Budget, Profile
from podium.workers import Pool, ScriptedWorker
from podium.workflow import Access, PlanRules, Step, Workflow, parse, render
from recorded_world import pool_of, replayed, spelled, tasks_of, world, write_recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return write_recording(tmp_path_factory.mktemp("world") / "made.parquet", world())


def planned(*rounds: tuple[Step, ...]) -> PrewrittenPlans:
    return PrewrittenPlans(tuple(Plan("", Workflow(steps)) for steps in rounds))


async def measured(recording: Recording, *rounds: tuple[Step, ...]) -> Evaluation:
    live = ScriptedWorker("live", {"": "Answer: yes"})
    planner, budget = planned(*rounds), Budget(rounds=len(rounds))
    runner = Runner(planner, pool_of(recording, live), budget=budget)
    return await evaluate(runner, tasks_of(recording, "test"))


ADA, BOB, CY, VOTE, LIVE = range(5)
SEES = Access(all=True)


@pytest.mark.parametrize(
    ("rounds", "share"),
    [
        ([(Step(ADA, ANSWER_WHOLE_QUESTION),)], 0),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION, SEES),)], 0),
        (
            [(Step(ADA, f"1. {ANSWER_WHOLE_QUESTION}"), Step(BOB, f"2. {CHECK}"), Step(VOTE, "Vote.", SEES))],
            1 / 2,
        ),
        ([(Step(ADA, "Only this: add."),)], 1),
        (
            [(Step(ADA, ANSWER_WHOLE_QUESTION), Step(BOB, ANSWER_WHOLE_QUESTION), Step(VOTE, "Vote.", SEES))],
            0,
        ),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION), Step(BOB, CHECK), Step(VOTE, "Vote.", SEES))], 1 / 2),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION), Step(BOB, ANSWER_WHOLE_QUESTION, SEES))], 1 / 2),
        (
            [
                (
                    Step(ADA, ANSWER_WHOLE_QUESTION),
                    Step(BOB, CHECK, SEES),
                    Step(CY, ANSWER_WHOLE_QUESTION, Access(steps=(1,))),
                )
            ],
            2 / 3,
        ),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION), Step(LIVE, CHECK, SEES))], 0),
        ([(Step(LIVE, "Guess."), Step(ADA, ANSWER_WHOLE_QUESTION, SEES))], 1),
        ([(Step(LIVE, "Guess."),)], 0),
        ([(Step(ADA, CHECK), Step(BOB, ANSWER_WHOLE_QUESTION))], 0),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION),), (Step(BOB, ANSWER_WHOLE_QUESTION),)], 0),
        (
            [(Step(ADA, ANSWER_WHOLE_QUESTION),), (Step(BOB, ANSWER_WHOLE_QUESTION), Step(CY, CHECK, SEES))],
            1 / 3,
        ),
        (
            [(Step(ADA, ANSWER_WHOLE_QUESTION),), (Step(BOB, ANSWER_WHOLE_QUESTION, Access(previous=True)),)],
            1 / 2,
        ),
        ([(Step(ADA, ANSWER_WHOLE_QUESTION),), (Step(BOB, ANSWER_WHOLE_QUESTION, SEES),)], 1 / 2),
    ],
)
async def test_rewritten_subtasks_and_sight_of_work_go_beyond_the_recording(
    recording: Recording, rounds: list[tuple[Step, ...]], share: float
) -> None:
    assert (await measured(recording, *rounds)).beyond_recording == pytest.approx(share)


@pytest.mark.parametrize(
    ("steps", "share"),
    [
        ((Step(0, ANSWER_WHOLE_QUESTION),), 0),
        ((Step(0, "Only this: add."),), 1),
        ((Step(1, ANSWER_WHOLE_QUESTION), Step(0, ANSWER_WHOLE_QUESTION, SEES)), 2 / 3),
        ((Step(1, ANSWER_WHOLE_QUESTION), Step(1, CHECK, SEES)), 1 / 2),
    ],
)
async def test_beyond_recording_applies_a_team_subtask_to_its_inner_responses(
    recording: Recording, steps: tuple[Step, ...], share: float
) -> None:
    inner = pool_of(recording)
    team = TeamWorker(Profile(name="team"), Runner(Committee(("ada", "bob")), inner))
    runner = Runner(planned(steps), Pool([team, *replayed(recording)]))
    evaluation = await evaluate(runner, tasks_of(recording, "test"))
    assert evaluation.beyond_recording == pytest.approx(share)


async def test_beyond_recording_ignores_a_subtask_that_repeats_the_question(recording: Recording) -> None:
    tasks = tasks_of(recording, "test")
    planner = Constant(Workflow((Step(0, spelled(13)),)), ("ada",))
    evaluation = await evaluate(Runner(planner, pool_of(recording)), tasks)
    assert evaluation.beyond_recording == pytest.approx(15 / 16)


async def test_beyond_recording_ignores_outer_space_of_a_repeated_question(tmp_path: Path) -> None:
    question, responses = world()[0]
    spaced = type(question)("q", f"{question.text}\n", None, None, "test")
    recording = write_recording(tmp_path / "r.parquet", [(spaced, responses)])
    workflow = parse(render(Workflow((Step(0, spaced.text),))), PlanRules(workers=1))
    assert isinstance(workflow, Workflow)
    runner = Runner(Constant(workflow, ("ada",)), pool_of(recording))
    evaluation = await evaluate(runner, tasks_of(recording, "test"))
    assert evaluation.beyond_recording == 0
