"""What holds for every planner: it plans for any pool of 1 to 9 workers, whatever they reply, and ends in time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers import known_answers
from podium.errors import WorkerError
from podium.planners import PlannerSpec, find_baseline, open_baseline
from podium.planners.answer_matrix import AnswerMatrix
from podium.team import Runner
from podium.types import Budget, Limits, Price, Profile, Question, Rating
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.vote import VOTE, VoteWorker
from podium.workflow import Acceptance, PlanRules, parse

QUESTION = "What is 6 times 7?"
REPLIES = (
    "Answer: 42",
    "Answer: 41",
    "The product is \\boxed{42}",
    "Best: 0\nAnswer: 42",
    "Best: 99",
    "3, 1, 2 [[1, 2]] [4,",
    "APPROVED",
    "No changes needed.",
    '{"suggestion": "Add 1.", "answer_changes": true, "is_flawed": true}',
    'true {"flawed": "yes", "next": 7, "answer": null}',
    "{" * 200,
    "\ud7ff \x00 \u2028 " + "long " * 2000,
    " ",
    "",
)
"""What workers reply, in any order: answers, verdicts that can and cannot be read, and nothing."""
FAILURE = WorkerError("It is down.", kind="server_error")


def workers(count: int, random: Random) -> list[ScriptedWorker]:
    """Workers with prices and ratings; some of their calls fail."""
    return [
        ScriptedWorker(
            f"w{k}",
            [FAILURE if random.random() < 0.15 else random.choice(REPLIES) for _ in range(400)],
            profile=Profile(
                name=f"w{k}",
                price=Price(input=k, output=k),
                rating=Rating(cluster="sums", accuracy=random.random(), cost_usd=0.01 * k, questions=9),
            ),
            limits=Limits(retries=0),
        )
        for k in range(count)
    ]


def scored(names: list[str], random: Random) -> AnswerMatrix:
    """Answers to other questions, from which planners learn."""
    score_QW = np.asarray([[float(random.random() < 0.6) for _ in names] for _ in range(12)])
    texts = tuple(f"What is {k} plus {random.randint(1, 99)}?" for k in range(12))
    return known_answers(names, texts, score_QW, 0.01 + score_QW)


PLACES = {
    "A+B": lambda names: f"2x{'+'.join(names)}",
    **dict.fromkeys(("WORKER", "LEADER", "PANEL", "WEAK", "G", "R"), lambda names: names[0]),
    **dict.fromkeys(("C", "JUDGE", "AUDITOR", "VERIFIER", "STRONG", "V"), lambda names: names[-1]),
    **dict.fromkeys(("SAMPLES", "TURNS", "REFINEMENTS", "MOST"), lambda names: "4"),
    "PER_USD": lambda names: "10",
    "SHARE": lambda names: "0.5",
    "METHOD": lambda names: "ridge",
    "FILE": lambda names: "FILE",
}
"""What stands in a name for each word of a syntax, by the names of the pool's workers."""


def example_name(syntax: str, names: list[str]) -> str:
    """A full name of a planner for a pool with these workers."""
    kind, colon, form = syntax.partition(":")
    return kind + colon + re.sub(r"A\+B|[A-Z_]+", lambda place: PLACES[place[0]](names), form)


FurtherNames = Callable[[list[str]], list[str]]
"""Further names of a planner that plans differently by them, from the workers' names."""
WriteFile = Callable[[list[str], int], Path]
"""Writes the file of a planner that reads one, from the workers' names and a seed."""


def check_planner(
    baseline: PlannerSpec,
    write_file: WriteFile | None = None,
    further_names: FurtherNames = lambda names: [],
) -> None:
    """Check one baseline over many pools."""

    def full_names(names: list[str], seed: int) -> list[str]:
        file = "" if write_file is None else str(write_file(names, seed))
        return [example_name(baseline.syntax, names).replace("FILE", file), *further_names(names)]

    @settings(max_examples=3 if baseline.learns else 12, deadline=None)  # Learning takes long.
    @given(st.integers(1, 9), st.integers(0, 2**32), st.integers(0, 9))
    def holds(count: int, seed: int, choice: int) -> None:
        _run_and_check(baseline, count, seed, choice, full_names)

    holds()


def _run_and_check(
    baseline: PlannerSpec,
    count: int,
    seed: int,
    choice: int,
    full_names: Callable[[list[str], int], list[str]],
) -> None:
    """Open the baseline by one of its names for a pool of `count` workers, run it, and check the trace."""
    random = Random(f"every-planner/{seed}")
    pool = workers(count, random)
    names = [worker.profile.name for worker in pool]
    examples = full_names(names, seed)
    name = examples[choice // 3 % len(examples)]
    found, argument = find_baseline(name)
    assert found is baseline
    assert set(baseline.needs(argument)) <= {*names, VOTE}
    planner = open_baseline(
        name,
        [*(worker.profile for worker in pool), VoteWorker().profile],
        scored=scored(names, random),
    )
    needed = planner.rounds
    rounds = (needed + 1, needed, 1)[choice % 3]
    tools = [VoteWorker()] if VOTE in baseline.needs(argument) else []
    calls = None if seed % 3 else seed % 17
    runner = Runner(planner, Pool([*pool, *tools]), budget=Budget(rounds=rounds, calls=calls))
    trace = asyncio.run(runner.answer(Question(text=QUESTION), seed=str(seed)))

    for number, round_ in enumerate(trace.rounds):
        assert round_.error is None
        decision = round_.workflow or Acceptance()
        size = len(round_.workflow.steps) if round_.workflow else 1
        assert (
            parse(round_.plan.text, PlanRules(workers=count + 1, max_steps=size, later_round=number > 0))
            == decision
        )
        if round_.plan.accepted_step is not None:
            at, step = round_.plan.accepted_step
            assert round_.response == trace.rounds[at].spans[step].response is not None
    assert sum(not round_.accepted for round_ in trace.rounds) <= needed
    if rounds > needed and (calls is None or needed > 1):
        assert trace.rounds[-1].accepted
    replied = any(span.response is not None for span in trace.spans)
    assert (trace.answer is not None) == replied
