"""Every exception that Podium raises, in one place.

    PodiumError
    ├── UsageError                the user gave something that cannot be used: exit status 2, nothing was started
    │   ├── ConfigError           a file or an override that cannot be used
    │   ├── CheckpointError       a folder that is not a checkpoint
    │   ├── UnknownTraceError     no trace has this id, or not for this caller
    │   └── RunMismatchError      a run folder that belongs to another configuration
    ├── WorkerError               one call to a worker failed (data for the executor, see below)
    ├── GraderError               a grader could not judge the answer (data, see below)
    ├── StoreError                a trace, booking, reply or recording could not be written: disk full, file locked
    ├── BudgetError               the dollars of a run or a day are spent
    ├── QuestionFailedError       no step of a question succeeded
    └── APIError                  the server refuses a request, in the terms of OpenAI's errors

A bad plan is not here: it is a value, `podium.workflow.PlanError`, because it is a training signal.
A `WorkerError` crosses one boundary only: the executor catches it and records it in the trace.
So does a `GraderError`: the rollout catches it, and counts as one whose infrastructure failed.
Our own bugs are ordinary exceptions and escape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

E = TypeVar("E", bound=Exception)


def flatten_group(errors: BaseExceptionGroup[E]) -> Iterator[E]:
    """The exceptions of a group, also of groups in it, in order."""
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from flatten_group(error)
        else:
            yield error


class PodiumError(Exception):
    """Root of all exceptions whose message is written for the user."""


class UsageError(PodiumError):
    """The user gave something that cannot be used; the message names the value and the way out."""


class ConfigError(UsageError):
    """A configuration file, key or value that cannot be used.

    Args:
        message: one sentence for the user, free of secrets.
        where: the way to what cannot be used in the tables of its file: keys, and numbers of items in lists.
    """

    def __init__(self, message: str, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.where = where


class NoTasksError(ConfigError):
    """A split that could be read holds no question."""


class CheckpointError(UsageError):
    """A folder that does not hold a checkpoint of the expected form."""


class UnknownTraceError(UsageError):
    """No trace has such an id, or none that this caller may see."""


class RunMismatchError(UsageError):
    """A run folder that was made with another configuration; the message names the keys."""


class WorkerError(PodiumError):
    """One call to one worker failed.

    Args:
        message: one sentence for the user, free of secrets.
        kind: a stable word for metrics: "timeout", "connection", "status", "limited", "protocol", "refused", "open",
            "unrecorded", "exhausted", "unready" of one that could not be built, "missing" where nothing is left
            to work on since earlier steps failed, or "environment" where training made the worker fail.
        retryable: whether the same call may succeed later (429, 5xx, timeouts, broken connections).
        retry_after_s: seconds that the worker asked us to wait, if it did.
        cost_usd: dollars that the failed call cost, where that is known.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        retryable: bool = False,
        retry_after_s: float | None = None,
        cost_usd: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.cost_usd = cost_usd


class GraderError(PodiumError):
    """A grader could not judge: a sandbox did not start, or a judge was not reached. The answer may be right."""


class StoreError(PodiumError):
    """A trace could not be written to its store, a booking to its account, a reply to its cache, or a recording.

    Args:
        message: one sentence for the user, free of secrets.
        retryable: whether the same may be written later; False: the data itself cannot be written.
    """

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable

    @classmethod
    def of_file(cls, path: Path, error: OSError) -> StoreError:
        """Of a file that cannot be written, and why."""
        reason = os.strerror(error.errno) if error.errno else error
        return cls(f"{path} cannot be written ({reason}); mend that, and give the same command again.")


class BudgetError(PodiumError):
    """The dollars of a run or a day do not suffice for the next call. What was paid for is kept."""


class QuestionFailedError(PodiumError):
    """No step of any round succeeded; the message names what failed."""


class APIError(PodiumError):
    """The server refuses a request, in the terms of OpenAI's errors.

    Args:
        status: the HTTP status.
        type: a stable word, such as "invalid_request_error", "budget_exceeded".
        message: one sentence for the caller, free of secrets.
        param: the field of the body that is at fault, as in "messages.2.content".
        code: a stable word for programs, where the type says too little.
        headers: further headers of the answer, such as Retry-After.
        more: further keys of the error, such as the id of the stored trace.
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
