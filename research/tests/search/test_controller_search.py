"""MASRouter's controller is trained on whole answers: it beats the untrained one, costs count, and it continues."""

import pytest

from podium.errors import BudgetError, ConfigError, UsageError, WorkerError
from podium.executor import Dispatcher
from podium.executor.accounts import Account
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.types import Limits, Price, Profile, Question
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium_research.search.controllers import train_controller_live
from podium_research.search.settings import ControllerSearch
from scripted_team import Sums

SUMS = list(Sums(split="train", size=240))
SUMS = [
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
    options = {name: settings.pop(name) for name in ("kept", "dispatcher") if name in settings}
    training = train_controller_live(pool, tasks, ControllerSearch(**settings), **options)
    return [epoch async for epoch in training]


async def test_a_utility_is_one_for_a_right_answer_minus_the_price_of_its_dollars():
    (dear,) = await epochs(scripted(), SUMS, epochs=1, per_usd=10.0)
    assert sum(dear.utilities) == pytest.approx(len(SUMS) - 10 * dear.cost_usd)
    assert dear.cost_usd > 0.003 * len(SUMS)
    assert dear.controller.kinds == ("sums",)


async def test_kept_utilities_lead_to_the_same_controller_and_no_epoch_is_made_again():
    whole = await epochs(scripted(), SUMS, epochs=3)
    rest = await epochs(scripted(), SUMS, epochs=3, kept=[epoch.utilities for epoch in whole[:2]])
    assert rest == whole[2:]


async def test_a_budget_that_ends_stops_it_and_teams_whose_workers_failed_teach_nothing():
    (free,) = await epochs(scripted(), SUMS, epochs=1)
    account = Account(None, "run", 0.5 * free.cost_usd)
    with pytest.raises(BudgetError):
        await epochs(scripted(), SUMS, epochs=1, dispatcher=Dispatcher(accounts=[account]))
    broken = scripted(WorkerError("It is down.", kind="server_error"))
    with pytest.raises(UsageError, match="failed on all questions of epoch 1"):
        await epochs(broken, SUMS, epochs=1)
    with pytest.raises(ConfigError, match="workers names 'eve'"):
        await epochs(scripted(), SUMS, workers=("eve",))
