"""Answers that were paid for, kept: the same question to the same worker is asked once (docs/caching.md).

    asked   what makes two requests the same      reply   a reply, as text for the file
    table   the rows, in an SQLite file           cache   what the executor calls
    nearest the recorded request most like one that is missing

It asks nothing by itself and never expires anything: `forget` does, when told to.
"""

from podium.workers.response_cache.cache import ResponseCache
from podium.workers.response_cache.table import WorkerSummary

__all__ = ["ResponseCache", "WorkerSummary"]
