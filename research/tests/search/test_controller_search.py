"""MASRouter's controller is trained on whole answers: it beats the untrained one, costs count, and it continues."""

import pytest

from podium.calls import CallState
from podium.errors import BudgetExceededError, ConfigError, UsageError, WorkerError
from podium.evals.evaluation import evaluate
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.types import Limits, Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium_research.planners.masrouter import MasRouter
from podium_research.planners.masrouter_controller import Controller
from podium_research.search.controllers import train_controller_live
from podium_research.search.settings import ControllerSearch
from scripted_team import Sums, open_team

TASKS = [
    Task(
        id=f"t/{k}",
        question=Question(text=f"Which? {k}"),
        gold="yes",
        grader=Exact(),
        facts={"family": "sums"},
    )
    for k in range(20)
]


def scripted(answer="Answer: yes", count=5000):
    """One worker. A call costs some dollars."""
    profile = Profile(name="ada", price=Price(output=1000.0))
    return Pool([ScriptedWorker("ada", [answer] * count, profile=profile, limits=Limits(retries=0))])


async def epochs(pool, tasks, **settings):
    options = {name: settings.pop(name) for name in ("resume_from", "call_state") if name in settings}
    training = train_controller_live(
        pool, tasks, ControllerSearch(pool="given", tasks="given", **settings), **options
    )
    return [epoch async for epoch in training]


async def test_training_makes_the_controller_better_than_untrained():
    pool, seen, unseen = open_team(), list(Sums("train", size=240)), list(Sums("validation", size=150))
    found = await epochs(pool, seen, epochs=5)
    untrained = Controller.untrained(found[-1].found.workers)
    before = await evaluate(Runner(MasRouter(untrained), pool), unseen)
    after = await evaluate(Runner(MasRouter(found[-1].found), pool), unseen)
    assert after.accuracy.mean > before.accuracy.mean + 0.08


async def test_a_utility_is_a_right_answer_minus_the_price_of_its_dollars():
    (dear,) = await epochs(scripted(), TASKS, epochs=1, per_usd=10.0)
    assert sum(dear.scores) == pytest.approx(len(TASKS) - 10 * dear.cost_usd)
    assert dear.cost_usd > 0.003 * len(TASKS)
    assert dear.found.kinds == ("sums",)


async def test_kept_utilities_give_the_same_controller_without_a_new_epoch():
    whole = await epochs(scripted(), TASKS, epochs=3)
    rest = await epochs(scripted(), TASKS, epochs=3, resume_from=[epoch.scores for epoch in whole[:2]])
    assert rest == whole[2:]


async def test_controller_search_stops_at_its_budget_and_ignores_failed_teams():
    (free,) = await epochs(scripted(), TASKS, epochs=1)
    spend_limit = SharedSpendLimit(None, "run", 0.5 * free.cost_usd)
    with pytest.raises(BudgetExceededError):
        await epochs(scripted(), TASKS, epochs=1, call_state=CallState(spend_limits=[spend_limit]))
    broken = scripted(WorkerError("It is down.", kind="server_error"))
    with pytest.raises(UsageError, match="failed on all questions of epoch 1"):
        await epochs(broken, TASKS, epochs=1)
    with pytest.raises(ConfigError, match="workers names 'eve'"):
        await epochs(scripted(), TASKS, workers=("eve",))
