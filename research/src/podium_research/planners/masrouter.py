"""MASRouter (Yue et al. 2025, arXiv 2502.11133): for each question a mode, a number of workers, and a role for each.

A trained controller draws all of it from the question's words before any worker is called; the plan has one round. The
original embeds questions, roles and models with MiniLM, has up to twelve roles for each kind of question, and lets a
fixed model write the final answer. Here words are hashed, roles and workers have learned vectors, there are five roles,
and a vote or the last worker gives the answer. So this says nothing about the original's accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.planners.baseline import plan_once, refuse_without_vote, voting_step, worker_number
from podium.planners.controls import CHECK, COMPARE, FINISH, NEXT
from podium.planners.rating_router import parse_accuracy_per_usd
from podium.planners.reflection import AGAIN
from podium.planners.voting import Committee
from podium.plugin_api.planners import (
    Access,
    BaselineContext,
    Plan,
    Planner,
    PlannerSpec,
    PlanRequest,
    Step,
    Workflow,
)
from podium.types import ANSWER_WHOLE_QUESTION, SEED_PREFIX_CHARS, Profile
from podium_research.planners.debate import REVISE
from podium_research.planners.scored_answers import answers_of_workers

if TYPE_CHECKING:
    from podium_research.planners.masrouter_controller import Controller, Mode, Role, RoutedTeam

_SUBTASKS: dict[Role, str] = {
    "solver": ANSWER_WHOLE_QUESTION,
    "starter": NEXT,
    "finisher": FINISH,
    "checker": CHECK,
    "judge": COMPARE,
}
_READERS = ("checker", "judge")
_STEP_BY_STEP = "Reason step by step, then give the answer."


@dataclass(frozen=True, slots=True)
class MasRouter(Planner):
    """Plans what `controller` draws. The same question always gets the same team."""

    controller: Controller
    name: str = "masrouter"

    async def plan(self, request: PlanRequest) -> Plan:
        """The team's steps; `ConfigError` if the pool lacks a worker or the vote."""
        team = _draw_team(self.controller, request)
        return plan_once(request, team_workflow(team, request.pool))


@dataclass(frozen=True, slots=True)
class ScoredMasRouter(Planner):
    """Plans a vote of the workers that `controller` draws, each once. In a tie its first worker wins."""

    controller: Controller
    name: str = "masrouter-scored"

    async def plan(self, request: PlanRequest) -> Plan:
        """The answers and the vote; `ConfigError` if the pool lacks a worker or the vote."""
        team = _draw_team(self.controller, request)
        return await Committee(team.voters(self.controller.workers)).plan(request)


def _draw_team(controller: Controller, request: PlanRequest) -> RoutedTeam:
    text = request.question.text
    return controller.draw(text, Random(f"masrouter/{text[:SEED_PREFIX_CHARS]}"))


def team_workflow(team: RoutedTeam, pool: Sequence[Profile]) -> Workflow:
    """The steps of a team.

    - io, cot: all work alone, in cot step by step. A vote decides.
    - chain, full: one after another; each sees the one before, in full all before. The last one's answer counts.
    - debate: all work alone, then each sees all responses and answers again. A vote decides.
    - reflection: each works alone, then sees its own response and answers again. A vote decides.

    A checker or judge that sees no other work answers the whole question.
    """
    steps = [
        _step(team.mode, role, worker_number(worker, pool), number)
        for number, (role, worker) in enumerate(team.members)
    ]
    count = len(steps)
    if team.mode == "debate":
        steps += [Step(step.worker, REVISE, Access(steps=tuple(range(count)))) for step in steps]
    elif team.mode == "reflection":
        steps += [Step(step.worker, AGAIN, Access(steps=(number,))) for number, step in enumerate(steps)]
    if count > 1 and team.mode not in ("chain", "full"):
        answers = tuple(range(len(steps) - count, len(steps)))
        steps.append(replace(voting_step(pool), access=Access(steps=answers)))
    return Workflow(tuple(steps))


def _step(mode: Mode, role: Role, worker: int, number: int) -> Step:
    """The first step of member `number`."""
    seen = {"chain": range(number)[-1:], "full": range(number)}.get(mode, range(0))
    subtask = _SUBTASKS[role] if seen or role not in _READERS else ANSWER_WHOLE_QUESTION
    if mode == "cot":
        subtask = f"{subtask} {_STEP_BY_STEP}"
    return Step(worker, subtask, Access(steps=tuple(seen)))


def _open_file(context: BaselineContext) -> MasRouter:
    from podium_research.planners.masrouter_controller import Controller  # noqa: PLC0415 - loads NumPy

    path = Path(context.argument)
    if not context.argument or not path.is_file():
        raise ConfigError(
            f"masrouter:{context.argument}: there is no such file; write masrouter:FILE with a controller's JSON."
        )
    controller = Controller.load(path)
    for worker in controller.workers:
        worker_number(worker, context.pool)
    refuse_without_vote(context.pool)
    return MasRouter(controller, f"masrouter:{context.argument}")


def _open_scored(context: BaselineContext) -> ScoredMasRouter:
    from podium_research.planners.masrouter_controller import train_on_scores  # noqa: PLC0415 - loads NumPy

    name = f"masrouter-scored:{context.argument}"
    per_usd = _per_usd(context.argument)
    assert context.scored is not None
    scored = answers_of_workers(context.scored, [profile.name for profile in context.pool], name)
    return ScoredMasRouter(train_on_scores(scored, per_usd=per_usd), name)


def _per_usd(argument: str) -> float:
    return parse_accuracy_per_usd(argument, f"masrouter-scored:{argument}", "masrouter-scored:10")


FROM_FILE = PlannerSpec("masrouter:FILE", _open_file, votes=True, reads_files=True, on_recordings=False)
FROM_SCORES = PlannerSpec(
    "masrouter-scored:PER_USD",
    _open_scored,
    votes=True,
    learns=True,
    check=_per_usd,
    team_only=True,
)
