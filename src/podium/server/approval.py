"""Plans that wait for approval: a dry run keeps its plan, and the caller runs it, edited or unchanged, or rejects it.

A waiting plan is a trace with the status "planned", whose id is the plan's id. It waits in the store of traces, so that
every replica over the same database can run it. Running removes the waiting plan. The trace of the run has the same id
and includes the cost of planning. A plan that must leave no trace waits in this process.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from podium.errors import APIError, StoreError
from podium.planners.planner import PrewrittenPlans
from podium.server.api_errors import invalid, not_found
from podium.server.keys import Caller
from podium.server.requests import ChatRequest
from podium.store import TraceStore
from podium.trace import Trace
from podium.types import Question
from podium.workers.pool import Pool
from podium.workflow import PlanError, PlanRules, Workflow, parse

PLAN_LIFETIME_S = 3600.0
"""Seconds for which a plan waits."""
MAX_IN_PROCESS = 100
"""The most plans of one caller that wait in this process. A further plan replaces the caller's oldest."""
_LOG = logging.getLogger("podium.server")


class WaitingPlans:
    """The plans that wait, each for its own caller."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._in_process: dict[str, Trace] = {}

    def add(self, planned: Trace, *, keep: bool) -> None:
        """Let a plan wait, only in this process unless it may leave a trace (`keep`). If planning failed, the trace is
        stored and does not wait."""
        if keep:
            try:
                self._store.add(planned)
                return
            except StoreError as error:
                _LOG.error("The plan %s waits in this process alone: %s", planned.id, error)
        if planned.status == "planned":
            self._keep_in_process(planned)

    def _keep_in_process(self, planned: Trace) -> None:
        now = datetime.now(UTC)
        self._in_process = {id_: other for id_, other in self._in_process.items() if now < expiry(other)}
        self._in_process[planned.id] = planned
        own = [id_ for id_, other in self._in_process.items() if other.owner == planned.owner]
        for id_ in own[:-MAX_IN_PROCESS]:
            del self._in_process[id_]

    async def find(self, id_: str, caller: Caller) -> Trace:
        """The plan with this id.

        Raises:
            APIError: 404, the plan does not wait, or waits for another caller.
        """
        planned = self._in_process.get(id_) or await self._store.to_thread(
            self._store.find, id_, caller.visible_owner
        )
        if (
            planned is None
            or planned.id != id_
            or planned.status != "planned"
            or planned.owner != caller.name
            or datetime.now(UTC) >= expiry(planned)
        ):
            raise _plan_not_found(id_)
        return planned

    async def take(self, planned: Trace) -> None:
        """End the wait of a plan, from `find`. If several calls on any replicas take one plan, only one succeeds, and
        the others raise an `APIError`: 404. If the call is cancelled, the plan keeps waiting."""
        if self._in_process.pop(planned.id, None) is not None:
            return
        taking = asyncio.ensure_future(
            self._store.to_thread(self._store.delete, planned.id, planned.owner, "planned")
        )
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # The database may have deleted the plan already, and nobody is left to run it.
            taking.add_done_callback(lambda done: self._put_back(planned, done))
            raise
        if not taken:
            raise _plan_not_found(planned.id)

    def _put_back(self, planned: Trace, taking: asyncio.Future[bool]) -> None:
        """Let a plan wait again, if `taking` took it."""
        if not taking.cancelled() and taking.exception() is None and taking.result():
            self.add(planned, keep=True)

    async def reject(self, id_: str, caller: Caller) -> None:
        """Take the plan, and store its trace as that of a cancelled question."""
        was_in_process = id_ in self._in_process
        planned = await self.find(id_, caller)
        await self.take(planned)
        if not was_in_process:
            rejected = {"status": "cancelled", "error": "The plan was rejected."}
            self._store.add(planned.model_copy(update=rejected))


def expiry(planned: Trace) -> datetime:
    """The time from which a plan no longer waits."""
    return datetime.fromisoformat(planned.started_at) + timedelta(seconds=PLAN_LIFETIME_S)


def _plan_not_found(id_: str) -> APIError:
    return not_found(
        f"There is no plan {id_[:64]!r} that you may run: it was run, rejected or expired, or never was; ask for "
        "a new one with dry_run.",
        "podium.plan_id",
        code="plan_not_found",
    )


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """A plan that waited and that its caller approved."""

    planned: Trace
    workflow: Workflow
    """The plan, edited or unchanged, with the worker numbers of `planned.pool`."""

    @classmethod
    def of(cls, planned: Trace, request: ChatRequest) -> ApprovedPlan:
        """The plan as the request approves it.

        Raises:
            APIError: 400, the request is about another question, or the edited plan cannot be run.
        """
        if not _is_same_question(planned.question, request.question):
            raise invalid(
                f"The plan {planned.id} is for another question: send the messages that it was made for.",
                "podium.plan_id",
            )
        workflow = planned.rounds[0].workflow
        assert workflow is not None
        if request.options.workflow is not None:
            edited = parse(
                request.options.workflow,
                PlanRules(workers=len(planned.pool), max_steps=max(planned.max_steps, len(workflow.steps))),
            )
            if not isinstance(edited, Workflow):
                why = edited.message if isinstance(edited, PlanError) else "It has no steps."
                raise invalid(why, "podium.workflow", code="invalid_plan")
            workflow = edited
        return cls(planned, workflow)

    @property
    def worker_names(self) -> tuple[str, ...]:
        """The names of the workers, in the order of the plan's numbers."""
        return tuple(profile.name for profile in self.planned.pool)

    def workflow_for(self, pool: Pool) -> Workflow:
        """The workflow with the numbers of `pool`.

        Raises:
            APIError: 400, the pool lacks a step's worker.
        """
        steps = []
        for position, step in enumerate(self.workflow.steps):
            name = self.worker_names[step.worker]
            if name not in pool.names:
                raise invalid(
                    f"Step {position} of the plan needs the worker {name!r}, which this request may not use now: "
                    "give the step another worker.",
                    "podium.workflow",
                    code="invalid_plan",
                )
            steps.append(replace(step, worker=pool.names.index(name)))
        return Workflow(tuple(steps))

    def planner(self, pool: Pool) -> PrewrittenPlans:
        """A planner that returns this plan for `pool`, under the name of the planner that wrote it."""
        (round_,) = self.planned.rounds
        edited = self.workflow != round_.workflow
        plan = replace(
            round_.plan,
            decision=self.workflow_for(pool),
            edited=edited,
            reason=None if edited else round_.plan.reason,
        )
        return PrewrittenPlans((plan,), self.planned.planner)


def _is_same_question(planned: Question, asked: Question) -> bool:
    return (planned.text, planned.history, planned.images) == (asked.text, asked.history, asked.images)
