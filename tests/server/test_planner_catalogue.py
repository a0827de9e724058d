"""Which planners requests may name, and what the server knows of the configured one."""

import pytest

from chat_worker import ChatClient, chat_worker
from podium.calls import CallState
from podium.errors import APIError
from podium.server.planner_catalogue import PlannerCatalogue
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.team.settings import PlanSettings, TeamSettings
from podium.team.team import Team
from podium.types import Price, Profile
from podium.workers import Pool, ScriptedWorker, VoteWorker
from podium.workflow import PlanError
from podium_testing import FaultServer

ADA = ScriptedWorker("ada", ["yes"])
DOWN = PlanError("planner_failed", "ada: no route to host.")


def planners(*, vote: bool = True) -> PlannerCatalogue:
    workers = Pool([ADA, VoteWorker()] if vote else [ADA])
    settings = TeamSettings(plan=PlanSettings(planner="single:ada"))
    return PlannerCatalogue(Team.from_settings(settings, workers, call_state=CallState()))


@pytest.mark.parametrize("kind", ["budget_exceeded", "time_is_up"])
async def test_budget_refusal_of_a_plan_does_not_clear_the_conductor_error(kind: str) -> None:
    known = planners()
    name = (await known.get(None)).planner.name
    known.record_plan(name, DOWN)
    known.record_plan(name, PlanError(kind, "The question may cost $0.01."))
    assert known.last_error == DOWN.message
    known.record_plan(name, None)
    assert known.last_error is None
    known.record_plan(name, PlanError(kind, "The question may cost $0.01."))
    assert known.last_error is None


async def test_budget_refusal_of_a_check_does_not_report_a_silent_conductor() -> None:
    with FaultServer("No plan.").in_thread() as endpoint:
        profile = Profile(name="large", price=Price(output=1.0))
        pool = Pool([chat_worker(profile, ChatClient(endpoint.url), "m")])
        call_state = CallState(spend_limits=[SharedSpendLimit(None, "day", 0.0)])
        known = PlannerCatalogue(Team.from_settings(TeamSettings(), pool, call_state=call_state))
        assert (await known.check()).error == "budget_exceeded"
        await known.close()
    assert known.last_error is None
    assert not endpoint.requests


async def test_unreadable_plan_shows_that_the_conductor_answers() -> None:
    known = planners()
    name = (await known.get(None)).planner.name
    known.record_plan(name, DOWN)
    known.record_plan(name, PlanError("no_lists", "There are no lists."))
    assert known.last_error is None


@pytest.mark.parametrize(
    ("vote", "forms"),
    [
        (
            True,
            ("single:ada", "random", "single:WORKER", "self-consistency:WORKER:SAMPLES"),
        ),
        (False, ("single:ada", "random", "single:WORKER")),
    ],
)
def test_requests_may_name_every_baseline_that_the_pool_can_run(vote: bool, forms: tuple[str, ...]) -> None:
    assert planners(vote=vote).forms == forms


@pytest.mark.parametrize(
    "name", ["nobody", "constant:plan.txt", "random:1", "self-consistency:ada:033", "best"]
)
async def test_planner_names_of_files_or_of_unknown_form_are_refused(name: str) -> None:
    with pytest.raises(APIError, match="There is no planner"):
        await planners().get(name)


@pytest.mark.parametrize(
    ("name", "workers"),
    [(None, ("ada",)), ("self-consistency:ada:3", ("ada", "vote")), ("conductor", ()), ("random", ())],
)
def test_planner_requires_the_workers_in_its_name(name: str | None, workers: tuple[str, ...]) -> None:
    assert planners().required_workers(name) == workers
