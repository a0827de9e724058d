"""What a request's `model` stands for: the configured planner, another planner, or one worker.

A name alone; whether the caller may have it is `eligible_workers`'s.


@@Whom a request may have: what the key allows, what the request allows, and who can do what it needs.

Every refusal is made before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from podium.config import suggestion
from podium.errors import APIError
from podium.server.api_errors import forbidden, invalid, missing
from podium.server.keys import Caller
from podium.types import Profile, Question
from podium.workers.pool import Pool

if TYPE_CHECKING:
    from podium.server.planners import Planners
    from podium.server.requests import ChatRequest


_OURS = "podium"


def resolve_model(
    model: str, planner: str | None, pool: Pool, caller: Caller
) -> tuple[str | None, str | None]:
    """The planner (None: the configured one) and the worker that is asked straight (None: a planner decides).

    Args:
        planner: that of the object `podium`.

    Raises:
        APIError: 404 for a model that is none, 400 for two planners.
    """
    if model == _OURS:
        return planner, None
    family, slash, name = model.partition("/")
    if family == _OURS and slash and model not in pool.names:
        if planner not in (None, name):
            raise invalid(
                f"The model {model[:100]!r} and podium.planner name two planners; give one.", "podium.planner"
            )
        return name, None
    if model not in pool.names:
        raise unknown_model(model, pool, caller)
    if planner is not None:
        raise invalid(
            f"The model {model!r} is a worker, asked without a plan; leave podium.planner out.",
            "podium.planner",
        )
    return None, model


def eligible_workers(pool: Pool, caller: Caller, request: ChatRequest, planners: Planners) -> Pool:
    """The workers that a planner may choose from.

    Raises:
        APIError: 400 or 404 for a name that is not known, 403 for one that is not allowed, 400 where nobody is left.
    """
    allowed = caller.allowed(pool.names)
    _check_lists(pool, allowed, request)
    about = None if request.planner is None else planners.named_worker(request.planner)
    if about is not None and about in pool.names:
        _check_allowed(about, allowed, request.planner_param)
    fits = _capability_filter(request.question)
    left = [
        number
        for number, profile in enumerate(pool.profiles)
        if profile.name in allowed
        and (request.allow is None or profile.name in request.allow)
        and profile.name not in request.deny
        and fits(profile)
    ]
    if not left:
        raise _no_worker(request.question)
    offered = [pool.names[number] for number in left]
    for name in planners.required_workers(request.planner):
        if name not in offered:
            who = f"has no worker {name[:100]!r}" if name not in pool.names else f"leaves out {name!r}"
            raise invalid(
                f"The planner needs what the request {who}.", request.planner_param, code="no_worker"
            )
    return pool if len(left) == len(pool) else pool.subset(left)


def worker_and_fallbacks(pool: Pool, caller: Caller, request: ChatRequest) -> Pool:
    """The worker that is asked straight, first, and those who may take over from it.

    Raises:
        APIError: 404 for a worker that is not there, 403 for one that is not allowed, 400 for one that cannot do it.
    """
    name = request.worker or ""
    if name not in pool.names:
        raise unknown_model(name, pool, caller)
    allowed = caller.allowed(pool.names)
    _check_allowed(name, allowed, "model")
    _check_lists(pool, allowed, request)
    if name in request.deny or (request.allow is not None and name not in request.allow):
        raise invalid(f"The model {name!r} is a worker that the request itself leaves out.", "podium")
    fits = _capability_filter(request.question)
    if not fits(pool.named(name).profile):
        raise _no_worker(request.question, name)
    chain = [name]
    while (after := pool.fallback(pool.named(chain[-1]))) is not None:
        chain.append(after.profile.name)
    out = set(request.deny) | {
        other for other in chain if request.allow is not None and other not in request.allow
    }
    taken = [
        pool.names.index(other)
        for other in chain
        if other in allowed and other not in out and fits(pool.named(other).profile)
    ]
    return pool.subset(taken)


def unknown_model(name: str, pool: Pool, caller: Caller) -> APIError:
    """The refusal of a model that is none."""
    models = ["podium", *caller.allowed(pool.names)]
    return missing(
        f"The model {name[:100]!r} does not exist; {suggestion(name, models)} GET /v1/models lists them.",
        "model",
        code="model_not_found",
    )


def _check_lists(pool: Pool, allowed: tuple[str, ...], request: ChatRequest) -> None:
    """Every name that the request itself allows or denies is one that there is, and that may be asked for."""
    for key, names in (("podium.allow", request.allow or ()), ("podium.deny", request.deny)):
        for name in names:
            if name not in pool.names:
                raise invalid(
                    f"There is no worker {name[:100]!r}; {suggestion(name, allowed)}",
                    key,
                    code="unknown_worker",
                )
    for name in request.allow or ():
        _check_allowed(name, allowed, "podium.allow")


def _check_allowed(name: str, allowed: tuple[str, ...], param: str) -> None:
    if name not in allowed:
        raise forbidden(
            f"This key may not use the worker {name!r}; ask for another, or with another key.", param
        )


def _capability_filter(question: Question) -> Callable[[Profile], bool]:
    sees = has_images(question)
    calls = bool(question.options.tools)
    return lambda profile: (profile.sees or not sees) and (profile.calls_tools or not calls)


def has_images(question: Question) -> bool:
    """Whether there is an image in the question or in its past."""
    return bool(question.images) or any(message.images for message in question.history)


def _no_worker(question: Question, name: str | None = None) -> APIError:
    who = "No worker that may be asked" if name is None else f"The worker {name!r}"
    lacks = "lacks" if name is not None else "has"
    what = [
        *(["sees = true (the request has images)"] if has_images(question) else []),
        *(["calls_tools = true (the request has tools)"] if question.options.tools else []),
    ]
    if not what:
        return invalid(
            "The request leaves no worker: allow more, or deny fewer.", "podium.allow", code="no_worker"
        )
    param = "messages" if has_images(question) else "tools"
    return invalid(f"{who} {lacks} {' and '.join(what)} in its profile.", param, code="no_worker")
