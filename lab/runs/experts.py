"""How good plans by the parts of each question are over the orchestra, each part done by its expert.

python lab/runs/experts.py [QUESTIONS]

Questions of the train split. The parts are known, and a part's expert is the worker whose card says that it knows best
what the part looks up. A Conductor may find better plans, since another worker, wording or merging of parts is luckier
on some questions. The other rows take something away from these plans.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from random import Random

import podium_lab
from podium.evals.stats import accuracy_interval
from podium.planners.planner import PrewrittenPlans
from podium.rollout import run_rollout
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.types import ANSWER_WHOLE_QUESTION, Question
from podium.workers.pool import Pool
from podium.workflow import Access, Step, Workflow, render
from podium_lab.exercises.abilities import ABILITIES, JOINS, Ability
from podium_lab.exercises.cases import draw_split_problem
from podium_lab.exercises.plans import DrawnStep, WorldParts, draw_steps
from podium_lab.world import RELATIONS, Problem, word_question, world
from podium_lab.world.tasks import HOP_SHARES

CARDS = Path(podium_lab.__file__).parent / "assets" / "orchestra"
VARIANTS: dict[str, Callable[[Step], Step]] = {
    "what a step needs is shown": lambda step: step,
    "all earlier steps are shown": lambda step: replace(step, access=Access(all=True)),
    "no earlier step is shown": lambda step: replace(step, access=Access()),
    "every subtask is the whole question": lambda step: replace(step, subtask=ANSWER_WHOLE_QUESTION),
}


def known(ability: Ability) -> dict[str, float]:
    """How often a worker answers rightly for each relation, and for joins: by its card, which is about what it was
    taught, and by how much of a field that is."""
    right = json.loads((CARDS / ability.name / "card.json").read_text())["right"]
    shares = {
        name: min(share, right.get("result", {}).get(name, 1.0)) * ability.knows[RELATIONS[name].field]
        for name, share in right.get("named", {}).items()
    }
    return shares if "joins" not in right else shares | {JOINS: right["joins"]["all"]}


def expert(part: DrawnStep, knows: Sequence[dict[str, float]]) -> int:
    """The worker that most likely does a part rightly."""
    names = part.relations or (part.skill,)
    return max(range(len(knows)), key=lambda k: prod(knows[k].get(name, 0.0) for name in names))


def draw(index: int) -> tuple[Problem, Task]:
    rng = Random(f"experts/{index}")
    problem = draw_split_problem(rng, "train", HOP_SHARES)
    question = Question(text=word_question(problem, rng))
    return problem, Task(id=f"{index}", question=question, gold=problem.answer(world()), grader=Exact())


async def right(
    problem: Problem,
    task: Task,
    change: Callable[[Step], Step],
    knows: Sequence[dict[str, float]],
    pool: Pool,
) -> bool:
    count = min(5, len(WorldParts(problem).skills))
    parts = draw_steps(Random(task.id), problem, count)
    if not parts:
        return False  # More paths than a plan has steps.
    steps = [
        change(Step(expert(part, knows), f"{place}. {part.subtask}", Access(steps=part.reads)))
        for place, part in enumerate(parts)
    ]
    plan = PrewrittenPlans((render(Workflow((replace(steps[0], access=Access()), *steps[1:]))),))
    rollout = await run_rollout(Runner(plan, pool), task, seed=task.id)
    return rollout.correct


async def main(count: int) -> None:
    pool = open_pool("orchestra")
    knows = [known(ability) for ability in ABILITIES]  # The pool's order; its vote comes last.
    drawn = [draw(index) for index in range(count)]
    for variant, change in VARIANTS.items():
        found = await asyncio.gather(*(right(problem, task, change, knows, pool) for problem, task in drawn))
        by: dict[str, list[bool]] = defaultdict(list)
        for (problem, _), verdict in zip(drawn, found, strict=True):
            by[f"{problem.hops} hops"].append(verdict)
            by[problem.join].append(verdict)
        share = accuracy_interval([float(verdict) for verdict in found], rollouts=count)
        print(f"{variant}: {100 * share.mean:.1f} % [{100 * share.low:.1f}, {100 * share.high:.1f}]")
        print("  " + ", ".join(f"{name} {100 * sum(v) / len(v):.0f} %" for name, v in sorted(by.items())))
    await pool.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 600))
