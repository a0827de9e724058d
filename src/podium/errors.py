"""The exceptions that users or several modules meet. An exception of one module or folder is defined there.

A bad plan is a value and no exception, `podium.workflow.PlanError`: it is a training signal. A `WorkerError` and a
`BudgetExceededError` become data in the trace: a step's in `executor/step_call.py`, a planner's in `team/runner.py`. A
`GraderError` makes the rollout one that failed by its infrastructure. Podium's own bugs are ordinary exceptions and
escape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

E = TypeVar("E", bound=Exception)


def flatten_group(errors: BaseExceptionGroup[E]) -> Iterator[E]:
    """The exceptions of a group and of the groups in it, in order."""
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from flatten_group(error)
        else:
            yield error


@contextmanager
def collecting_errors(problems: list[PodiumError]) -> Iterator[None]:
    """A PodiumError ends the block and is added to the problems, so that a user reads all of them at once."""
    try:
        yield
    except PodiumError as error:
        problems.append(error)


class PodiumError(Exception):
    """Root of all exceptions whose message is written for the user: one sentence, free of secrets."""


class UsageError(PodiumError):
    """The user gave something that cannot be used: exit status 2, and nothing was started. The message names the value
    and says what to do."""


class ConfigError(UsageError):
    """A configuration file, key or value that cannot be used. `where` is the path to it in the tables of its file:
    keys, and positions in lists."""

    def __init__(self, message: str, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.where = where


class NoTasksError(ConfigError):
    """A split was read and contains no question."""


class CheckpointError(UsageError):
    """A folder that does not hold a checkpoint of the expected form."""


class UnknownTraceError(UsageError):
    """No trace has this id, or the caller may not see it."""


class UnreadableTraceError(UsageError):
    """The document of a stored trace is damaged."""


class RunMismatchError(UsageError):
    """A run folder that was made with another configuration. The message names the keys that differ."""


WorkerErrorKind = Literal[
    "circuit_open",
    "connection",
    "content_filter",
    "context",
    "environment",
    "exhausted",
    "missing",
    "protocol",
    "rate_limited",
    "status",
    "timeout",
    "unready",
    "unrecorded",
]
"""A stable word for metrics.

Of the network: "connection": no connection, or it broke. "timeout": no answer in time. "rate_limited": the provider's
rate limit (429). "status": another error status. "protocol": a reply that cannot be read. "content_filter": the model
or its provider refuses to answer. "context": the messages do not fit in the model's context.

Of Podium: "circuit_open": the circuit breaker is open. "unready": the worker could not be built. "missing": a tool has
nothing to work on, since earlier steps failed. "exhausted": a script or a team has no answer. "unrecorded": a recording
or the response cache lacks the answer. "environment": training made it fail."""


class WorkerError(PodiumError):
    """One call to one worker failed. It is `retryable` if the same call may succeed later (429, 5xx, timeouts, broken
    connections), in `retry_after_s` seconds if the worker named them."""

    def __init__(
        self,
        message: str,
        *,
        kind: WorkerErrorKind,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class BudgetExceededError(PodiumError):
    """A limit refuses a call before it is made: of a question, a key, a run or a day. The message says which limit, and
    how to get a larger one. What was paid before is kept."""


class GraderError(PodiumError):
    """A grader could not judge an answer, which may be right: a sandbox did not start, or a judge was not reached.
    Until then, grading had cost `cost_usd` dollars."""

    def __init__(self, message: str, *, cost_usd: float = 0.0) -> None:
        super().__init__(message)
        self.cost_usd = cost_usd


class StoreError(PodiumError):
    """A trace, a charge, a cached reply or a recording could not be written to its file. It is not `retryable` if the
    data itself cannot be written."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable

    @classmethod
    def of_file(cls, path: Path, error: OSError) -> StoreError:
        """The error of a file that cannot be written, with the reason."""
        reason = os.strerror(error.errno) if error.errno else error
        return cls(f"{path} cannot be written ({reason}); fix that, and run the same command again.")


class DivergedError(PodiumError):
    """A figure of an update is not finite, so the policy would learn nothing more."""


class ServiceError(PodiumError):
    """The scoring service cannot be reached, or has failed for longer than its client waits for a restart."""


class QuestionFailedError(PodiumError):
    """No step of any round succeeded. The message names what failed."""


class APIError(PodiumError):
    """The server refuses a request, in the terms of OpenAI's errors.

    Args:
        type: a stable word, such as "invalid_request_error", "budget_exceeded".
        param: the request field at fault, such as "messages.2.content".
        code: a stable word for programs, where `type` says too little.
        more: further keys of the error object, such as the id of the stored trace.
    """

    def __init__(
        self,
        status: int,
        type: str,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.message = message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        self.more = dict(more or {})
