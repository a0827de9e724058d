"""A plan is not cheaper, quicker or smaller because its answers were in a response cache."""

import pytest

from podium.calls import CallState
from podium.evals import Comparison, evaluate
from podium.evals.comparison import comparison_row
from podium.evals.comparison_table import percent, table_notes
from podium.planners import Single
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.response_cache import ResponseCache
from podium.workers.scripted import ScriptedWorker

TASKS = [
    Task(id=f"t/{k}", question=Question(text=f"Which? {k}"), gold=str(k), grader=Exact()) for k in range(4)
]


class Paid(ScriptedWorker):
    """One that is worth a cache."""

    def __init__(self, name: str) -> None:
        profile = Profile(name=name, price=Price(input=100.0, output=100.0))
        super().__init__(name, {"": f"{name} says.\nAnswer: 1"}, delay=0.01, profile=profile)
        self.identity = {"kind": "paid", "model": name}  # type: ignore[assignment]


@pytest.fixture
def call_state(tmp_path):
    with ResponseCache(tmp_path / "c.sqlite") as cache:
        yield CallState(cache=cache)


async def test_an_evaluation_out_of_the_cache_has_the_figures_of_the_paid_one(call_state):
    worker = Paid("w")
    paid, cached = [
        await evaluate(Runner(Single("w"), Pool([worker]), call_state=call_state), TASKS, repeats=2)
        for _ in range(2)
    ]
    assert len(worker.requests) == 8
    assert cached.cost_usd == paid.cost_usd > 0
    assert (paid.saved_usd, cached.saved_usd) == (0, cached.cost_usd)
    assert sum(rollout.trace.cost_usd for rollout in cached.rollouts) == 0
    assert (cached.calls, cached.accuracy, cached.steps) == (paid.calls, paid.accuracy, paid.steps)
    assert cached.latency_s == pytest.approx(paid.latency_s, rel=0.5)
    assert cached.latency_s >= 0.01
    before, after = (comparison_row("single", "w", evaluation) for evaluation in (paid, cached))
    assert (before.saved_usd, after.saved_usd) == (0, after.cost_usd)
    assert after.cost_usd == before.cost_usd


async def test_the_table_says_how_much_was_not_paid_again(call_state):
    one, other = Paid("one"), Paid("another")
    rows = []
    for name in ("one", "one", "another"):
        found = await evaluate(Runner(Single(name), Pool([one, other]), call_state=call_state), TASKS)
        rows.append(comparison_row("single", name, found))
    comparison = Comparison(questions=4, seed="0", pool=("one", "another"), rows=tuple(rows))
    share = percent(rows[1].cost_usd / sum(shown.cost_usd for shown in rows))
    said = (
        f"{share} of these dollars were not paid again, because a response cache had the answers. The table counts the "
        "dollars and seconds of their first calls."
    )
    assert said in list(table_notes(comparison))
    without = comparison.model_copy(update={"rows": (rows[0], rows[2])})
    assert not any("response cache" in note for note in table_notes(without))
