"""Pools for training: the whole one, or random parts without those that are held out."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.calls import CallState
from podium.config import build
from podium.errors import ConfigError
from podium.planners.planner import Planner, PlanRequest, PrewrittenPlans
from podium.rollout import Rollout, run_rollout
from podium.rollout.pool_sampling import PoolSampler, PoolSampling
from podium.tasks.graders.text_graders import Exact
from podium.tasks.task import Task
from podium.team import Runner
from podium.trace import Plan
from podium.types import Question
from podium.workers import Pool, ScriptedWorker
from podium.workers.build import build_worker
from podium.workers.replacements import FailingWorker
from podium.workers.response_cache import ResponseCache
from podium.workers.spec import OpenAISpec
from podium.workers.vote import VoteWorker
from podium.workflow import Step, Workflow

POOL = Pool([ScriptedWorker(name, []) for name in ("ada", "bram", "cleo", "dora", "egon")])


def test_a_fixed_pool_is_the_file_s() -> None:
    assert PoolSampler(POOL, PoolSampling()).draw("any").names == POOL.names


def test_random_pool_is_a_shuffled_subset_that_depends_on_its_seed() -> None:
    source = PoolSampler(POOL, PoolSampling(random=True, min_workers=2, max_workers=4))
    drawn = [source.draw(str(i)).names for i in range(200)]
    assert drawn[7] == source.draw("7").names
    assert {len(names) for names in drawn} == {2, 3, 4}
    assert {names[0] for names in drawn} == set(POOL.names)


def test_held_out_worker_is_never_drawn() -> None:
    source = PoolSampler(POOL, PoolSampling(random=True, min_workers=2, max_workers=3, without=("cleo",)))
    assert all("cleo" not in source.draw(str(i)).names for i in range(200))


def test_no_set_of_workers_is_in_training_and_test() -> None:
    draws = (
        PoolSampling(random=True, min_workers=2, max_workers=4, subsets=part)
        for part in ("train", "test", "all")
    )
    train, test, every = (
        {frozenset(source.draw(str(i)).names) for i in range(500)}
        for source in (PoolSampler(POOL, d) for d in draws)
    )
    assert train.isdisjoint(test)
    assert train | test == every
    assert 0.1 < len(test) / len(every) < 0.4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            PoolSampling(without=("clio",)),
            "pool_sampling.without names 'clio', which is not in the pool; did you mean 'cleo'?",
        ),
        (
            PoolSampling(random=True, min_workers=4, max_workers=6),
            "Random pools of 4 to 6 cannot be drawn from 5 workers; set pool_sampling.min_workers and "
            "pool_sampling.max_workers to fit.",
        ),
        (
            PoolSampling(subsets="test"),
            'pool_sampling.subsets is for random pools; set random = true, or subsets = "all".',
        ),
        (
            PoolSampling(random=True, min_workers=5, max_workers=5, subsets="test"),
            'No set of 5 to 5 workers of this pool is in the part "test"; draw from more workers, or set subsets = '
            '"all".',
        ),
    ],
)
def test_impossible_pool_sampling_settings_are_refused(settings: PoolSampling, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        PoolSampler(POOL, settings)
    assert str(error.value) == message


# --- workers that are made to fail ---------------------------------------------------------------------

TASK = Task("t", Question(text="What is 6 times 7?"), "42", Exact())
RARELY, OFTEN = PoolSampling(failure_probability=0.1), PoolSampling(failure_probability=0.999999)


def failing(pool: Pool) -> tuple[str, ...]:
    return tuple(worker.profile.name for worker in pool if isinstance(worker, FailingWorker))


def plan(*workers: int) -> str:
    lists = [[], *[["all"]] * (len(workers) - 1)]
    return f"model_id = {list(workers)}\nsubtasks = {['Do it.'] * len(workers)}\naccess_list = {lists}"


async def rolled(pool: Pool, *workers: int, call_state: CallState | None = None) -> Rollout | None:
    runner = Runner(PrewrittenPlans((plan(*workers),)), pool, call_state=call_state or CallState())
    rollout = await run_rollout(runner, TASK, seed="s")
    return None if rollout.infrastructure_failed else rollout


def test_workers_fail_at_the_set_rate_and_equally_within_a_group() -> None:
    source = PoolSampler(POOL, RARELY)
    drawn = [failing(source.draw(str(i))) for i in range(2000)]
    assert drawn[7] == failing(PoolSampler(POOL, RARELY).draw("7"))
    for name in POOL.names:
        assert 0.07 < sum(name in names for names in drawn) / len(drawn) < 0.13


def test_simulated_failures_do_not_change_drawn_workers_or_profiles() -> None:
    healthy = PoolSampler(POOL, PoolSampling(random=True, min_workers=2, max_workers=4))
    sick = PoolSampler(POOL, PoolSampling(random=True, min_workers=2, max_workers=4, failure_probability=0.9))
    for i in range(50):
        assert sick.draw(str(i)).profiles == healthy.draw(str(i)).profiles


async def test_a_planner_sees_other_names_of_workers_and_tools_keep_theirs() -> None:
    pool = Pool([ScriptedWorker("ada", ["Ada."]), ScriptedWorker("bram", ["Bram."]), VoteWorker("vote")])
    source = PoolSampler(pool, PoolSampling(renamed=True, failure_probability=0.5))
    drawn = [source.draw(str(i)) for i in range(50)]
    seen = [tuple(profile.name for profile in each.profiles_for("Who?")) for each in drawn]
    assert len(set(seen)) > 40
    assert {names[2] for names in seen} == {"vote"}
    assert all(each.names == ("ada", "bram", "vote") for each in drawn), (
        "traces and spend limits keep their own"
    )
    assert source.draw("7").profiles_for("Who?") == drawn[7].profiles_for("Who?")

    class Asked(Planner):
        name = "the first worker"

        async def plan(self, request: PlanRequest) -> Plan:
            self.names = [profile.name for profile in request.pool]
            return Plan("", Workflow((Step(0, "Answer."),)))

    planner = Asked()
    answering = PoolSampler(pool, PoolSampling(renamed=True)).draw("7")
    trace = await Runner(planner, answering).answer(Question(text="Who?"))
    assert trace.answer == "Ada."
    assert tuple(planner.names) == seen[7] != answering.names
    assert [span.worker for span in trace.spans] == ["ada"]


def test_simulated_failures_spare_built_in_tools() -> None:
    assert failing(PoolSampler(Pool([*POOL, VoteWorker("vote")]), OFTEN).draw("0")) == POOL.names


@pytest.fixture
def endpoint() -> Pool:
    """A worker behind an address at which nobody listens."""
    limits = {"retries": 0, "timeout": 1}
    spec = {
        "kind": "openai",
        "name": "gone",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "limits": limits,
    }
    return Pool([build_worker(build(spec, OpenAISpec))])


async def test_simulated_failure_makes_the_answer_wrong_but_keeps_the_rollout(
    endpoint: Pool,
) -> None:
    assert await rolled(endpoint, 0) is None, "infrastructure failed"
    rollout = await rolled(PoolSampler(endpoint, OFTEN).draw("0"), 0)
    assert rollout is not None
    assert (rollout.valid, rollout.correct, rollout.infrastructure_failed) == (True, False, False)
    (span,) = rollout.trace.spans
    assert span.status == "failed"
    assert [attempt.error_kind for attempt in span.attempts] == ["environment"]
    await endpoint.close()


async def test_another_worker_or_a_fallback_makes_up_for_a_simulated_failure() -> None:
    ill = FailingWorker(ScriptedWorker("ill", {}, fallback="well"))
    well = ScriptedWorker("well", {"": "Answer: 42"})
    by_fallback, by_plan = await rolled(Pool([ill, well]), 0), await rolled(Pool([ill, well]), 0, 1)
    assert by_fallback is not None
    assert by_plan is not None
    assert (by_fallback.correct, by_fallback.trace.spans[0].answered_by) == (True, "well")
    assert by_plan.correct
    ill_too = Pool([ill, FailingWorker(well)])
    neither = await rolled(ill_too, 0)
    assert neither is not None
    assert not neither.correct


async def test_a_fallback_that_is_down_is_infrastructure_still(endpoint: Pool) -> None:
    pool = Pool([FailingWorker(ScriptedWorker("ill", {}, fallback="gone")), *endpoint])
    assert await rolled(pool, 0) is None
    await endpoint.close()


async def test_vote_on_simulated_failures_counts_as_a_wrong_answer() -> None:
    pool = PoolSampler(Pool([ScriptedWorker("ada", {"": "Answer: 42"}), VoteWorker("vote")]), OFTEN).draw("0")
    rollout = await rolled(pool, 0, 1)
    assert rollout is not None
    assert (rollout.trace.answer, rollout.valid, rollout.correct) == (None, True, False)


async def test_simulated_failure_ignores_the_cache_and_other_questions(
    tmp_path: Path,
) -> None:
    class Kept(ScriptedWorker):
        identity = {"kind": "kept"}  # noqa: RUF012

    well = Kept("ada", {"": "Answer: 42"})
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        call_state = CallState(cache=cache)
        answered = await rolled(Pool([well]), 0, call_state=call_state)
        failed = await rolled(PoolSampler(Pool([well]), OFTEN).draw("0"), 0, call_state=call_state)
        assert answered is not None
        assert failed is not None
        assert (answered.correct, failed.correct) == (True, False)
        (channel,) = call_state.channels
        assert (channel.attempts, channel.failures, channel.breaker.state) == (1, 0, "closed")
