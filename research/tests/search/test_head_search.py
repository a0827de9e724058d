"""TRINITY's head is trained on whole answers: it learns whom to ask and in which role, and continues if stopped."""

import pytest

from podium.calls import CallState
from podium.errors import BudgetExceededError, ConfigError, UsageError, WorkerError
from podium.evals.evaluation import evaluate
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Reply
from podium.types import Budget, Limits, Price, Profile, Question, Usage
from podium.workers.pool import Pool
from podium.workers.scripted import ScriptedWorker
from podium.workers.view import read_view
from podium.workers.vote import VoteWorker
from podium_research.planners.trinity import Trinity
from podium_research.search.heads import train_head_live
from podium_research.search.settings import HeadSearch

TASKS = [
    Task(id=f"t/{k}", question=Question(text=f"Which? {k}"), gold="yes", grader=Exact()) for k in range(12)
]
SMALL = HeadSearch(pool="given", tasks="given", generations=8, population=12, replications=3, sigma=0.1)


class Planned(ScriptedWorker):
    """Answers rightly only in sight of a plan, if it is able to at all."""

    def __init__(self, name, *, able):
        profile = Profile(name=name, price=Price(output=1000.0))
        super().__init__(name, [], profile=profile, limits=Limits(max_tokens=1))
        self.able = able

    async def answer(self, request):
        view = read_view(request.messages)
        shown = any(step.response == "PLAN" for step in view.earlier)
        text = f"Answer: {'yes' if self.able and shown else 'no'}"
        if "Do not answer" in view.subtask:
            text = "PLAN"
        elif "Check the latest" in view.subtask:
            text = "ACCEPT"
        return Reply(text=text, usage=Usage(output_tokens=1))


def pool():
    return Pool([Planned("ada", able=False), Planned("bob", able=True), VoteWorker()])


async def generations(team, settings=SMALL, **options):
    return [found async for found in train_head_live(team, TASKS, settings, **options)]


async def right(head):
    found = await evaluate(Runner(Trinity(head), pool(), budget=Budget(rounds=Trinity.rounds)), TASKS)
    return found.accuracy.mean


async def test_head_learns_to_plan_first_and_to_pick_the_right_worker():
    found = await generations(pool())
    assert found[0].found.workers == ("ada", "bob")
    assert found[-1].found.choose("Which? 3", None)[1] == "thinker"
    assert await right(found[-1].found) == 1.0
    assert sum(found[0].scores) / 12 < 0.5 < sum(found[-1].scores) / 12


async def test_kept_rewards_give_the_same_heads_without_a_new_generation():
    three = SMALL.model_copy(update={"generations": 3})
    whole = await generations(pool(), three)
    rest = await generations(pool(), three, resume_from=[found.scores for found in whole[:2]])
    assert rest == whole[2:]


async def test_a_dollar_costs_reward_and_a_budget_that_ends_stops_the_training():
    (free,) = await generations(pool(), SMALL.model_copy(update={"generations": 1}))
    spend_limit = SharedSpendLimit(None, "run", 1.05 * free.cost_usd)
    settings = SMALL.model_copy(update={"per_usd": 1.0})
    training = train_head_live(pool(), TASKS, settings, call_state=CallState(spend_limits=[spend_limit]))
    dear = await anext(training)
    lost = [before - after for before, after in zip(free.scores, dear.scores, strict=True)]
    assert sum(lost) == pytest.approx(free.cost_usd / SMALL.replications)
    with pytest.raises(BudgetExceededError, match="raise the run's budget"):
        await anext(training)


async def test_head_search_ignores_failed_workers_and_refuses_unknown_workers():
    broken = ScriptedWorker("eve", {"": WorkerError("Down.", kind="protocol")})
    with pytest.raises(UsageError, match="failed on all questions of generation 1: run podium pool check"):
        await generations(Pool([broken]))
    with pytest.raises(ConfigError, match="did you mean 'bob'"):
        await generations(pool(), SMALL.model_copy(update={"workers": ("bop",)}))
    with pytest.raises(ConfigError, match="has only tools"):
        await generations(Pool([VoteWorker()]))
