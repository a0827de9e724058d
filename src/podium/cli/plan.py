"""`podium plan`: what would be done and what it would cost; no worker is called."""

from __future__ import annotations

import asyncio
import json as json_
from collections.abc import Sequence
from dataclasses import asdict
from secrets import token_hex
from typing import Any

from rich.text import Text

from podium.cli.drawing import draw_workflow
from podium.cli.estimate import PlanEstimate, estimate
from podium.cli.opening import open_console, read_question
from podium.cli.options import AS_SHIPPED, Flag, PlannerOptions, PoolName
from podium.cli.planning import open_planner
from podium.cli.printable import counted, dollars, printable, seconds
from podium.errors import QuestionFailedError, UsageError
from podium.planner import Plan, Situation
from podium.types import Profile
from podium.workers.pool import open_pool
from podium.workflow import Workflow, topology


def plan(
    question: str,
    /,
    *,
    pool: PoolName = None,
    planner: PlannerOptions = AS_SHIPPED,
    max_steps: int = 5,
    response_tokens: int = 200,
    seed: str | None = None,
    json: Flag = False,
) -> int:
    """Show the plan for a question; returns 1 if it could not be read.

    Args:
        question: The question, in quotes; "-" reads it from standard input.
        max_steps: Steps that the plan may have.
        response_tokens: Tokens that a response is taken to have.
        seed: Names the planner's randomness. Default: a new one.
        json: Print the plan and its estimate as one line of JSON.
    """
    asked = read_question(question)
    if max_steps < 1 or response_tokens < 1:
        raise UsageError(f"--max-steps {max_steps} and --response-tokens {response_tokens}: give at least 1.")
    chosen_seed = token_hex(8) if seed is None else seed
    workers = open_pool(pool or "embedded")
    situation = Situation(
        asked, workers.profiles_for(asked.text), max_steps=max_steps, seed=f"{chosen_seed}/0/plan"
    )

    async def decide() -> tuple[str, Plan]:
        async with open_planner(planner, workers, seed=chosen_seed) as opened:
            return opened.name, await opened.plan(situation)

    name, decided = asyncio.run(decide())
    workflow = decided.decision
    if not isinstance(workflow, Workflow):
        if json:
            print(json_.dumps({"planner": name, "text": decided.text, "error": str(workflow)}))
        else:
            open_console().print(Text(printable(decided.text), "dim"))
        raise QuestionFailedError(f"There is no plan. {workflow}")
    expected = estimate(workflow, workers, asked, response_tokens=response_tokens)
    if json:
        print(json_.dumps(_document(name, decided, workflow, expected)))
    else:
        _print(name, decided, workflow, expected, workers.profiles)
    return 0


def _document(planner: str, decided: Plan, workflow: Workflow, expected: PlanEstimate) -> dict[str, Any]:
    return {
        "planner": planner,
        "text": decided.text,
        "planning_cost_usd": decided.cost_usd,
        "topology": topology(workflow),
        "workflow": asdict(workflow),
        "estimate": {
            "cost_usd": expected.cost_usd,
            "most_usd": expected.most_usd,
            "latency_s": expected.latency_s,
            "steps": [asdict(step) | {"usage": step.usage.model_dump()} for step in expected.steps],
        },
    }


def _print(
    planner: str, decided: Plan, workflow: Workflow, expected: PlanEstimate, pool: Sequence[Profile]
) -> None:
    notes = ["" for _ in workflow.steps]
    for step in expected.steps:
        about = f"about {counted(step.usage.tokens, 'token')}, {dollars(step.cost_usd)}"
        notes[step.position] = about + ("" if step.latency_s is None else f", {seconds(step.latency_s)}")
    planned = f"Planned by {printable(planner)}, {dollars(decided.cost_usd)}."
    costs = f"about {dollars(expected.cost_usd)}, at most {dollars(expected.most_usd)}"
    took = "" if expected.latency_s is None else f", about {seconds(expected.latency_s)}"
    console = open_console()
    console.print(draw_workflow(workflow, pool, notes))
    console.print(Text(f"\n{planned} Nothing was run."))
    console.print(Text(f"Running it: {counted(len(expected.steps), 'call')}, {costs}{took}.", "bold"))
