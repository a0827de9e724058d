"""`podium plan`: shows the plan for a question and estimates its cost; calls no worker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from rich.text import Text

from podium.cli.drawing import draw_workflow
from podium.cli.found_team import find_team
from podium.cli.options import Flag
from podium.cli.printable import counted, dollars, priced, printable, ranged, seconds
from podium.cli.team_options import AskOptions, Override
from podium.cli.terminal import open_console, print_json, read_question
from podium.errors import QuestionFailedError
from podium.executor.plan_estimate import (
    ASSUMED_SPREAD,
    ASSUMED_TOKENS,
    MIN_PAST_ANSWERS,
    NEWEST_TRACES,
    Estimate,
    PastAnswers,
    PlanEstimate,
    estimate_plan,
    past_answers_in,
)
from podium.files.locations import refuse_malformed_address
from podium.store import TraceStore
from podium.team.team import Team
from podium.workflow import Workflow, topology


async def plan(
    question: str,
    /,
    *overrides: Override,
    team: AskOptions = AskOptions(),
    seed: str | None = None,
    json: Flag = False,
) -> int:
    """Show the plan for a question; returns 1 if it could not be read.

    Args:
        question: The question, in quotes; "-" reads it from standard input.
        seed: Seeds the planner's randomness. Default: a new one.
        json: Print the plan and its estimate as one line of JSON.
    """
    asked_question = read_question(question)
    settings = find_team(team, overrides).read()
    chosen_seed = token_hex(8) if seed is None else seed
    past = _past(settings.store_address)
    # The plan is shown before the team closes: it is paid for, whatever closing its spend limits says.
    async with Team.from_settings(settings, seed=chosen_seed) as opened:
        name, decided = opened.planner.name, await opened.plan(asked_question, seed=chosen_seed)
        workflow = decided.decision
        if not isinstance(workflow, Workflow):
            if json:
                print_json({"planner": name, "text": decided.text, "error": str(workflow)})
            else:
                open_console().print(Text(printable(decided.text), "dim"))
            raise QuestionFailedError(f"There is no plan. {workflow}")
        expected = estimate_plan(workflow, opened.pool, asked_question, past=past)
        if json:
            print_json(
                {
                    "planner": name,
                    "text": decided.text,
                    "planning_cost_usd": None if decided.spent.unpriced else decided.spent.cost_usd,
                    "topology": topology(workflow),
                    "workflow": workflow,
                    "estimate": expected,
                }
            )
        else:
            console = open_console()
            console.print(draw_workflow(workflow, opened.pool.profiles, _notes(workflow, expected)))
            planned = f"{printable(name)}, {priced(decided.spent.cost_usd, decided.spent.unpriced)}"
            console.print(Text(f"\nPlanned by {planned}. Nothing was run."))
            console.print(Text(_summary(expected), "bold"))
            if not all(step.past_answers for step in expected.steps):
                assumed = f"responses of {ASSUMED_TOKENS} tokens, "
                spread = f"{ASSUMED_SPREAD} times fewer or {ASSUMED_SPREAD} times more"
                known = f"Assumed where fewer than {MIN_PAST_ANSWERS} past answers are known"
                console.print(Text(f"{known}: {assumed}{spread}.", "dim"))
    return 0


def _past(store: str | None) -> Mapping[str, PastAnswers]:
    """The past answers in the store. There are none if it is a database, or not made yet."""
    if store is None:
        return {}
    refuse_malformed_address(store)
    if not Path(store).is_file():
        return {}
    with TraceStore(Path(store), read_only=True) as traces:
        return past_answers_in(traces.newest(NEWEST_TRACES))


def _notes(workflow: Workflow, expected: PlanEstimate) -> list[str]:
    """A line about the cost of each step. It is empty for a step that is skipped."""
    notes = ["" for _ in workflow.steps]
    for step in expected.steps:
        basis = f"from {counted(step.past_answers, 'past answer')}" if step.past_answers else "assumed"
        notes[step.position] = f"about {_tokens(step)}, {_price(step)}{_time(step)}; {basis}"
    return notes


def _summary(expected: PlanEstimate) -> str:
    about = "about " if expected.cost_usd.likely or not expected.unpriced else ""
    most = "" if expected.unpriced else f", at most {dollars(expected.most_usd)}"
    calls = counted(len(expected.steps), "call")
    return f"Running it: {calls}, {about}{_price(expected)}{most}, {_tokens(expected)}{_time(expected)}."


def _tokens(expected: Estimate) -> str:
    tokens = expected.tokens
    return f"{counted(round(tokens.likely), 'token')} ({tokens.low:,.0f} to {tokens.high:,.0f})"


def _price(expected: Estimate) -> str:
    if not expected.unpriced:
        return ranged(dollars, expected.cost_usd)
    return priced(expected.cost_usd.likely, expected.unpriced)


def _time(expected: Estimate) -> str:
    return "" if expected.seconds is None else f", {ranged(seconds, expected.seconds)}"
