"""Decides which planner and which workers a request may use. Every refusal happens here, before anything runs.

The request's `model` names the configured planner, another planner or one worker. A worker may be used if the key and
the request allow it, and its profile supports the request's images and tools. A denied worker is not called as a
fallback either, nor within a team of the pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from podium.config import suggestion
from podium.errors import APIError
from podium.server.api_errors import forbidden, invalid, not_found
from podium.server.keys import Caller
from podium.team.team_worker import TeamWorker, pool_without
from podium.types import Profile, Question
from podium.workers.pool import Pool

if TYPE_CHECKING:
    from podium.server.planner_catalogue import PlannerCatalogue
    from podium.server.requests import ChatRequest

_REASONS = {"sees": "images", "calls_tools": "tools"}
"""What in a request needs these fields of a worker's profile."""


class ModelChoice(NamedTuple):
    """What the `model` of a request names."""

    planner: str | None = None
    """The name of the planner. None for the configured planner."""
    worker: str | None = None
    """The worker to call directly. None if a planner decides."""


def resolve_model(model: str, pool: Pool, caller: Caller) -> ModelChoice:
    """The planner or worker that `model` names.

    Raises:
        APIError: 404 for an unknown model.
    """
    if model != "podium" and model in pool.names:
        return ModelChoice(worker=model)
    family, slash, name = model.partition("/")
    if family != "podium" or (slash and not name):
        raise unknown_model(model, pool, caller)
    return ModelChoice(planner=name or None)


def eligible_workers(pool: Pool, caller: Caller, request: ChatRequest, planners: PlannerCatalogue) -> Pool:
    """The workers that a planner may choose from.

    Raises:
        APIError: 400 or 404 for an unknown name, 403 for a worker that the key may not use, 400 if no worker is left.
    """
    allowed = caller.allowed(pool.names)
    _check_lists(pool, allowed, request)
    named = None if request.planner is None else planners.named_worker(request.planner)
    if named is not None and named in pool.names:
        _check_allowed(named, allowed, "model")
    needs = _needs(request.question)
    numbers = [
        number
        for number, profile in enumerate(pool.profiles)
        if profile.name in allowed
        and (request.options.allow is None or profile.name in request.options.allow)
        and _supports(profile, needs)
    ]
    if not numbers:
        raise _no_worker(needs)
    usable = pool if len(numbers) == len(pool) else pool.subset(numbers)
    offered = pool_without(usable, _denied(caller, request))
    if offered is None:
        raise _no_worker(needs)
    for name in planners.required_workers(request.planner):
        if name not in offered.names:
            raise _lacks_required_worker(name, pool, needs)
    return offered


def worker_and_fallbacks(pool: Pool, caller: Caller, request: ChatRequest) -> Pool:
    """The worker that the request calls directly, followed by its fallbacks.

    Raises:
        APIError: 404 for an unknown worker, 403 for a worker that the key may not use, 400 for a worker that lacks an
            ability.
    """
    name = request.worker or ""
    if name not in pool.names:
        raise unknown_model(name, pool, caller)
    allowed = caller.allowed(pool.names)
    _check_allowed(name, allowed, "model")
    _check_lists(pool, allowed, request)
    if not request.allows(name):
        raise invalid(f"The model {name!r} is a worker that the request itself leaves out.", "podium")
    needs = _needs(request.question)
    if not _supports(pool.named(name).profile, needs):
        raise _no_worker(needs, name)
    chain = [name]
    while (after := pool.fallback(pool.named(chain[-1]))) is not None:
        chain.append(after.profile.name)
    numbers = [
        pool.names.index(other)
        for other in chain
        if other in allowed and request.allows(other) and _supports(pool.named(other).profile, needs)
    ]
    offered = pool_without(pool.subset(numbers), _denied(caller, request))
    if offered is None or name not in offered.names:
        raise invalid(f"The request leaves nobody in the team {name!r} to call: deny fewer.", "podium.deny")
    return offered


def _denied(caller: Caller, request: ChatRequest) -> frozenset[str]:
    """The workers that may not be called, neither directly nor by teams of the pool."""
    return frozenset((*caller.deny, *(request.options.deny or ())))


def unknown_model(name: str, pool: Pool, caller: Caller) -> APIError:
    models = ["podium", *caller.allowed(pool.names)]
    return not_found(
        f"The model {name[:100]!r} does not exist; {suggestion(name, models)} GET /v1/models lists them.",
        "model",
        code="model_not_found",
    )


def _check_lists(pool: Pool, allowed: tuple[str, ...], request: ChatRequest) -> None:
    """Check that every worker in the request's allow and deny lists exists and that the key may use it."""
    allow, deny = request.options.allow or (), request.options.deny or ()
    for name in (*allow, *deny):
        is_nested = name in deny and any(isinstance(own, TeamWorker) and name in own.names for own in pool)
        if name not in pool.names and not is_nested:
            key = "podium.allow" if name in allow else "podium.deny"
            problem = f"There is no worker {name[:100]!r}; {suggestion(name, allowed)}"
            raise invalid(problem, key, code="unknown_worker")
    for name in allow:
        _check_allowed(name, allowed, "podium.allow")


def _check_allowed(name: str, allowed: tuple[str, ...], param: str) -> None:
    if name not in allowed:
        raise forbidden(
            f"This key may not use the worker {name!r}: name another worker, or use another key.", param
        )


def _needs(question: Question) -> list[str]:
    """The fields of a profile that must be true of the workers for the question."""
    has_images = bool(question.images) or any(message.images for message in question.history)
    return [*(["sees"] if has_images else []), *(["calls_tools"] if question.options.tools else [])]


def _supports(profile: Profile, needs: list[str]) -> bool:
    return all(getattr(profile, need) for need in needs)


def _no_worker(needs: list[str], name: str | None = None) -> APIError:
    if not needs:
        problem = "The request leaves no worker: allow more, or deny fewer."
        return invalid(problem, "podium.allow", code="no_worker")
    who = "No allowed worker has" if name is None else f"The worker {name!r} lacks"
    what = " and ".join(f"{need} = true (the request has {_REASONS[need]})" for need in needs)
    param = "messages" if "sees" in needs else "tools"
    return invalid(f"{who} {what} in its profile.", param, code="no_worker")


def _lacks_required_worker(name: str, pool: Pool, needs: list[str]) -> APIError:
    if name not in pool.names:
        why = f"has no worker {name[:100]!r}"
    elif not _supports(pool.named(name).profile, needs):
        why = f"has tools or images, for which {name!r} is not made"
    else:
        why = f"leaves out {name!r}"
    problem = f"The planner needs a worker that is not available: the request {why}."
    return invalid(problem, "model", code="no_worker")
