"""Every exception that Podium raises, in one place.

    PodiumError
    ├── UsageError                asked wrongly: exit status 2, nothing was started
    │   ├── ConfigError           a file or an override that cannot be used
    │   ├── CheckpointError       a folder that is not a checkpoint
    │   └── RunMismatchError      a run folder that belongs to another configuration
    ├── WorkerError               one call to a worker failed (data for the executor, see below)
    ├── GraderError               a grader could not judge: nothing is known of the answer (data, see below)
    ├── StoreError                a trace could not be written: disk full, file locked
    └── QuestionFailedError       no step of a question succeeded

A bad plan is not here: it is a value, `podium.workflow.PlanError`, because it is a training signal.
A `WorkerError` crosses one boundary only: the executor catches it and records it in the trace.
So does a `GraderError`: `rollout.roll` catches it, and the rollout counts as one whose infrastructure failed.
Our own bugs are ordinary exceptions and escape.
"""

from __future__ import annotations


class PodiumError(Exception):
    """Root of all exceptions whose message is written for the user."""


class UsageError(PodiumError):
    """The caller asked wrongly; the message names the value and the way out."""


class ConfigError(UsageError):
    """A configuration file, key or value that cannot be used."""


class CheckpointError(UsageError):
    """A folder that does not hold a checkpoint of the expected form."""


class RunMismatchError(UsageError):
    """A run folder that was made with another configuration; the message names the keys."""


class WorkerError(PodiumError):
    """One call to one worker failed.

    Args:
        message: one sentence for the user, free of secrets.
        kind: a stable word for metrics: "timeout", "connection", "status", "protocol", "exhausted",
            "unrecorded" or "refused".
        passing: whether the same call may succeed later (429, 5xx, timeouts, broken connections).
        retry_after_s: seconds the worker asked us to wait, if it said so.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        passing: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.passing = passing
        self.retry_after_s = retry_after_s


class GraderError(PodiumError):
    """A grader could not judge (a sandbox that did not start, a judge that was not reached); no wrong answer."""


class StoreError(PodiumError):
    """A trace could not be written to its store."""


class QuestionFailedError(PodiumError):
    """No step of any round succeeded; the message names what failed."""
