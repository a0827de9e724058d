"""The response cache: keeps replies in an SQLite file, so that each request is paid for once (docs/caching.md).

    cache    what `podium.calls` uses
    entry    the key of a request; replies as JSON
    table    the rows, in an SQLite file

It calls no worker by itself. Replies never expire, but `ResponseCache.forget` deletes them.
"""

from podium.workers.response_cache.cache import ResponseCache
from podium.workers.response_cache.table import WorkerSummary

__all__ = ["ResponseCache", "WorkerSummary"]
