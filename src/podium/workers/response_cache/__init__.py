"""The response cache: the reply to a request is paid for once, and kept in an SQLite file (docs/caching.md).

    cache    what the executor calls              entry    the key of a request, and a reply, as text for the file
    table    the rows, in an SQLite file          nearest  the recorded request most like one that is missing

It calls no worker by itself and expires nothing: `ResponseCache.forget` deletes.
"""

from podium.workers.response_cache.cache import ResponseCache
from podium.workers.response_cache.table import WorkerSummary

__all__ = ["ResponseCache", "WorkerSummary"]
