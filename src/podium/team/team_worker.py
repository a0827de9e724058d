"""A team as one worker of another team. Each call answers one question with the inner team's pool and planner.

The inner team has its own call state, so it shares neither limits nor the response cache with the outer team, which
pays for it as for any worker. `team_file` builds such a worker from a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from podium.errors import UsageError, WorkerError
from podium.executor import StepText
from podium.team.events import ContinuedText, Event, QuestionEnded
from podium.team.opened_planner import OpenedPlanner
from podium.team.runner import Runner
from podium.trace import Reply, Trace
from podium.types import Limits, Message, Profile, ProviderState, Question, Spent
from podium.workers.base import (
    Request,
    Worker,
    WorkerTraits,
    costly_workers,
    has_costly_workers,
    has_paid_workers,
)
from podium.workers.pool import Pool

_TEAM = "podium_team"
"""The key in a team's provider state that holds the provider state of the inner worker."""


class TeamWorker(Worker):
    """A worker whose answers a runner gives.

    Args:
        profile: as for any worker, but without a price: a call costs what its workers and its planner cost.
        runner: answers each call within its own budget. The runner's pool is closed with this worker.
        opened_planner: the runner's planner, if it has connections. They are closed with this worker too.
        limits, fallback: as for any worker. A dollar budget reserves `limits.max_usd` before a call. If there is none,
            the budget of the outer question pays for each call that the team makes.
        identity: as for any worker. If it is None, the team's answers are not cached.
    """

    def __init__(
        self,
        profile: Profile,
        runner: Runner,
        *,
        opened_planner: OpenedPlanner | None = None,
        limits: Limits | None = None,
        fallback: str | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.profile = profile
        self.runner = runner
        self.limits = limits or Limits(retries=0)
        self.fallback = fallback
        self.identity = identity
        self.opened_planner = opened_planner
        calls_endpoint = opened_planner is not None and opened_planner.close_endpoint is not None
        paid = calls_endpoint or has_paid_workers(runner.pool)
        self.traits = WorkerTraits(
            cost="money" if paid else "compute" if has_costly_workers(runner.pool) else "nothing",
            pays_for_own_calls=True,
        )

    def __repr__(self) -> str:
        return f"TeamWorker({self.profile.name!r}, {self.runner.planner.name!r}, {self.runner.pool!r})"

    async def answer(self, request: Request) -> Reply:
        """Answer the last user message; the messages before it are the question's history. A `WorkerError` is of kind
        "exhausted" if the team has no answer, or "protocol" if it cannot take this request."""
        question = _question(request, self.profile.name)
        on_text, sent = request.on_text, ContinuedText()

        def receive(event: Event) -> None:
            if on_text is not None and isinstance(event, StepText) and not event.reasoning:
                if text := sent.add(event.attempt, event.text):
                    on_text(text)
            elif isinstance(event, QuestionEnded):
                request.receipt.add(Spent(event.trace.usage, event.trace.cost_usd))

        try:
            trace = await self.runner.with_spend_limits(*request.spend_limits).answer(
                question,
                seed=request.seed,
                sample=request.sample,
                on_event=receive,
                streams=on_text is not None,
            )
        except UsageError as error:
            raise WorkerError(f"The team cannot take this question: {error}", kind="protocol") from None
        if trace.answer is None:
            raise WorkerError(f"The team has no answer. {trace.error}", kind="exhausted")
        claims = any(span.claimed_s is not None for span in trace.spans)
        return Reply(
            trace.answer,
            trace.usage,
            latency_s=trace.critical_path_s if claims else None,
            cost_usd=trace.cost_usd,
            tool_calls=trace.tool_calls,
            provider_state=_nested_state(trace),
            nested=trace,
        )

    @property
    def names(self) -> frozenset[str]:
        """The names of the workers in the team's pool and in nested teams."""
        pool = self.runner.pool
        within = (worker.names for worker in pool if isinstance(worker, TeamWorker))
        return frozenset(pool.names).union(*within)

    def without(self, names: Collection[str]) -> TeamWorker | None:
        """A copy of the team without the workers of these names, also in nested teams. None if no worker is left."""
        if self.names.isdisjoint(names):
            return self
        pool = pool_without(self.runner.pool, names)
        if pool is None:
            return None
        return TeamWorker(
            self.profile,
            replace(self.runner, pool=pool),
            opened_planner=self.opened_planner,
            limits=self.limits,
            fallback=self.fallback,
            identity=None if self.identity is None else {**self.identity, "without": sorted(names)},
        )

    async def close(self) -> None:
        """Close the connections of the team's workers and planner. Calling this twice is fine."""
        try:
            await self.runner.pool.close()
        finally:
            if self.opened_planner is not None:
                await self.opened_planner.close()


def pool_without(pool: Pool, names: Collection[str]) -> Pool | None:
    """The pool without the workers of these names, also in nested teams: the pool itself if none has one of the names,
    None if no worker is left."""
    left = {
        number: worker.without(names) if isinstance(worker, TeamWorker) else worker
        for number, worker in enumerate(pool)
        if worker.profile.name not in names
    }
    remaining = {number: worker for number, worker in left.items() if worker is not None}
    if not remaining:
        return None
    if all(remaining.get(number) is worker for number, worker in enumerate(pool)):
        return pool
    return pool.subset([*remaining]).replaced({worker.profile.name: worker for worker in remaining.values()})


def share_limits(pool: Pool, number: int, process_count: int) -> None:
    """Divide the limits of the workers in a new pool, also in nested teams, among several processes; a limit that is
    too small for it is a `UsageError`.

    Each process, numbered from 0, takes its share when it opens its pool, so the processes need not talk to each other
    before a call. Tools and scripted workers keep their limits, since each process runs them separately.
    """
    for worker in costly_workers(pool):
        if isinstance(worker, TeamWorker):
            share_limits(worker.runner.pool, number, process_count)
        try:
            worker.limits = _share(worker, number, process_count)
        except AttributeError:
            raise UsageError(
                f"The limits of the worker {worker.profile.name!r} cannot be divided, because its kind does not let "
                "them change: serve with --processes 1."
            ) from None


def _share(worker: Worker, number: int, process_count: int) -> Limits:
    limits = worker.limits
    for name, most in (("concurrency", limits.concurrency), ("rpm", limits.rpm)):
        if most is not None and most < process_count:
            raise UsageError(
                f"The limit {name} = {most:g} of the worker {worker.profile.name!r} cannot be divided among "
                f"{process_count} processes: raise it, or serve with --processes {max(1, int(most))}."
            )
    shares = {
        "concurrency": limits.concurrency // process_count + (number < limits.concurrency % process_count),
        "rpm": None if limits.rpm is None else limits.rpm / process_count,
        "tpm": None if limits.tpm is None else limits.tpm / process_count,
    }
    return limits.model_copy(update=shares)


def _nested_state(trace: Trace) -> str:
    """The provider state of the team's answer, with the name of the inner worker that gave it."""
    state = trace.answer_state
    if state is None or not (state.fields or trace.tool_calls):
        return ""
    return json.dumps({_TEAM: state.model_dump()})


def _own_message(message: Message, team: str) -> Message:
    """A message that the team wrote, attributed to the inner worker that wrote it."""
    state = message.provider_state
    if state is None or state.worker != team or not state.fields:
        return message
    try:
        own = ProviderState.model_validate(json.loads(state.fields)[_TEAM])
    except (ValueError, KeyError, TypeError):  # A client may have written the state.
        return message
    return message.model_copy(update={"provider_state": own})


def _question(request: Request, team: str) -> Question:
    """The question of a request: its last user message, with the other messages as history. If an answer or a tool's
    result follows that message, the history has the whole conversation."""
    messages, options = tuple(_own_message(message, team) for message in request.messages), request.options
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise WorkerError("The team needs a message of the user, and this request has none.", kind="protocol")
    latest, after = messages[last], messages[last + 1 :]
    if any(message.role != "system" for message in after):
        return Question(text=latest.content, history=messages, options=options)
    return Question(
        text=latest.content, history=(*messages[:last], *after), images=latest.images, options=options
    )
