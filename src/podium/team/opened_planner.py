"""Opens the planner that a team's settings name, a Conductor or a baseline, and finds its fallback worker. If they name
none, it chooses one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from podium.calls import CallState
from podium.conductor.checkpoint import Checkpoint, PlanLimits, find_podium_file
from podium.conductor.conductor import Conductor
from podium.conductor.open import build_endpoint, make_worker_conductor, open_conductor, refuse_misfit
from podium.conductor.quarantine import QuarantinePlanner
from podium.conductor.settings import ConductorSettings
from podium.config import suggestion
from podium.errors import ConfigError, UsageError
from podium.executor import ExecutionSettings
from podium.planners import VOTE, find_baseline, open_baseline
from podium.planners.baseline import refuse_without_vote
from podium.planners.planner import Planner
from podium.planners.rating_router import RatingRouter
from podium.team.runner import Runner
from podium.team.settings import TeamSettings
from podium.workers.base import Worker, costly_workers, has_costly_workers, has_paid_workers
from podium.workers.pool import Pool
from podium.workers.replay import replays_bare_questions

_CHOSEN = "a worker of the pool"


@dataclass(frozen=True, slots=True)
class OpenedPlanner:
    """A planner with its fallback worker and its open connections."""

    planner: Planner
    description: str
    """Which planner this is, and why it was chosen, in words for messages."""
    pays: bool = False
    """Whether its plans may cost money."""
    fallback: str | None = None
    """The worker that answers a question when planning has failed. If it is None, such a question fails."""
    plan_limits: PlanLimits = PlanLimits()
    """The rounds and steps that hold where the settings name none: those of a Conductor's training, else the defaults;
    the rounds of a baseline are those of its method."""
    conductor: Conductor | None = None
    """The Conductor that writes the plans. None if the planner is a baseline."""
    close_endpoint: Callable[[], Awaitable[None]] | None = None
    """Closes the planner's own endpoint. None if the planner has no endpoint."""

    def make_runner(
        self, settings: TeamSettings, pool: Pool, call_state: CallState, *, shows_unloaded_models: bool
    ) -> Runner:
        """A runner that answers questions with this planner, within the limits of the settings, by the workers for
        which the planner was opened."""
        plan = settings.plan
        return Runner(
            self.planner,
            pool,
            budget=settings.budget.question_budget(self.plan_limits.rounds),
            max_steps=plan.max_steps or self.plan_limits.max_steps,
            settings=ExecutionSettings(layout=plan.layout, early_stop=plan.early_stop),
            call_state=call_state,
            overlap=plan.overlap,
            shows_unloaded_models=shows_unloaded_models,
            plan_fallback=self.fallback,
        )

    async def close(self) -> None:
        """Close the planner's connections. Calling this twice is fine. A later plan opens new connections."""
        if self.close_endpoint is not None:
            await self.close_endpoint()


def open_planner(settings: TeamSettings, pool: Pool, *, seed: str) -> OpenedPlanner:
    """Open the planner of `settings` for the workers of `pool`. The caller closes it.

    If the settings name neither a baseline nor a Conductor, each question goes to the worker with the best rating. If
    there are no ratings either, the first model of the pool conducts, untrained.

    Args:
        seed: seeds a planner that plans at random.

    Raises:
        UsageError: settings exclude each other, or what they name does not exist or must not conduct this pool.
    """
    choice, table = settings.plan, settings.conductor
    if not choice.uses_conductor:
        return _of_baseline(choice.planner, pool, seed)
    for key in ("worker", "fallback"):
        if (name := getattr(table, key)) is not None and name not in pool.names:
            missing = f"conductor.{key} names {name!r}, which is not in the pool"
            raise settings.error_at(f"{missing}; {suggestion(name, pool.names)}", "conductor", key)
    first = first_model(pool)
    if choice.conducting_worker is not None:
        opened = _of_worker(pool.named(choice.conducting_worker), table)
    elif (source := checkpoint_of(settings)) is not None:
        opened = _of_checkpoint(source, choice.cost_sensitivity, pool)
    else:
        opened = _untrained_here(settings, pool, first)
    fallback = table.fallback or opened.fallback or (None if first is None else first.profile.name)
    planner = QuarantinePlanner(opened.planner, pool.tools) if choice.quarantine_failing else opened.planner
    return replace(opened, planner=planner, fallback=fallback)


def checkpoint_of(settings: TeamSettings) -> str | None:
    """The checkpoint of the planner that `open_planner` opens: the name of a shipped one, or a folder. None if it has
    none."""
    return settings.conductor.checkpoint if settings.plan.planner == "conductor" else None


def first_model(pool: Pool) -> Worker | None:
    """The first live model of the pool, else the first live program, else the first recorded or scripted worker. None
    if all are tools."""
    live = min(costly_workers(pool), key=lambda worker: worker.traits.role != "model", default=None)
    return live or next((worker for worker in pool if not worker.is_tool), None)


def _of_baseline(name: str, pool: Pool, seed: str) -> OpenedPlanner:
    planner = open_baseline(name, pool.profiles, seed=seed, recorded=replays_bare_questions(pool))
    baseline = find_baseline(name)
    if baseline is not None and VOTE in baseline[0].needs(baseline[1]):
        refuse_without_vote(pool.profiles)
    limits = PlanLimits(rounds=planner.rounds)
    return OpenedPlanner(planner, f"the baseline {planner.name}", plan_limits=limits)


def _untrained_here(settings: TeamSettings, pool: Pool, first: Worker | None) -> OpenedPlanner:
    table = settings.conductor
    routed = _is_routed(table, pool)
    if settings.plan.cost_sensitivity is not None:
        plans = "the ratings choose a worker" if routed else "another model conducts"
        raise UsageError(f"cost_sensitivity is for a checkpoint, and here {plans}; leave it out.")
    if routed:
        planner = RatingRouter()
        why = "since the pool has ratings and its file names no Conductor"
        return OpenedPlanner(planner, f"the baseline {planner.name}, {why}")
    if table.base_url is not None:
        try:
            return _of_endpoint(table, pool)
        except ConfigError as error:
            raise settings.error_at(error, *error.where) from None
    worker = first if table.worker is None else pool.named(table.worker)
    if worker is None:
        raise UsageError(
            "All workers of this pool are tools, so none can conduct; name a Conductor or a planner."
        )
    why = "the pool's first model, since its file names none"
    return _of_worker(worker, table, why=why if table.worker is None else _CHOSEN)


def _is_routed(table: ConductorSettings, pool: Pool) -> bool:
    """Whether ratings decide which worker answers: no Conductor is named, and real workers have ratings."""
    if table.names_conductor or not has_costly_workers(pool):
        return False
    return any(profile.rating for profile in pool.profiles_for(""))


def _of_worker(worker: Worker, table: ConductorSettings, *, why: str = _CHOSEN) -> OpenedPlanner:
    # The table may describe a trained Conductor, whose settings do not hold for this worker.
    settings = table if table.podium_file is None else ConductorSettings()
    conductor = make_worker_conductor(worker, settings)
    return OpenedPlanner(
        conductor,
        f"{worker.profile.name}, {why}, untrained",
        pays=has_paid_workers([worker]),
        fallback=table.fallback or worker.profile.name,
        conductor=conductor,
    )


def _of_checkpoint(source: str, cost_sensitivity: float | None, pool: Pool) -> OpenedPlanner:
    checkpoint = Checkpoint.read(source)
    conductor = open_conductor(checkpoint, pool, cost_sensitivity=cost_sensitivity)
    return OpenedPlanner(
        conductor,
        f"the checkpoint {source}, trained on {checkpoint.scope.questions}",
        plan_limits=checkpoint.plan or PlanLimits(),
        conductor=conductor,
    )


def _of_endpoint(settings: ConductorSettings, pool: Pool) -> OpenedPlanner:
    training, plan = "untrained", None
    if settings.podium_file is not None:
        trained = find_podium_file(settings.podium_file)
        refuse_misfit(settings.podium_file, trained.conducts, pool)
        settings, plan = settings.with_training(trained), trained.plan
        training = f"trained on {trained.conducts.questions}"
    endpoint = build_endpoint(settings, pool)
    conductor = make_worker_conductor(endpoint, settings)
    return OpenedPlanner(
        conductor,
        f"{endpoint.profile.name} at {settings.base_url}, {training}",
        pays=True,
        plan_limits=plan or PlanLimits(),
        conductor=conductor,
        close_endpoint=endpoint.close,
    )
