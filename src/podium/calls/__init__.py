"""Calls one worker, for anything that needs its answer: a step of a workflow, a Conductor's plan, a judge, a check.

A call reserves dollars and tokens in a budget, waits for its worker's limits, is retried and hedged, and is settled at
its true cost. This package knows neither workflows nor plans. The executor calls fallbacks.
"""

from podium.calls.call_state import CallState
from podium.calls.worker_call import AttemptLog, CallContext, RetrySettings, WorkerCall

__all__ = [
    "AttemptLog",
    "CallContext",
    "CallState",
    "RetrySettings",
    "WorkerCall",
]
