"""The stores that keep traces, in SQLite and PostgreSQL: rows, queries, and the queue of traces that are to be written.

All that loads SQLAlchemy is here. The values of a trace know nothing of it.
"""

from podium.trace.store.trace_store import TraceStore, open_reader, open_store, read_trace

__all__ = ["TraceStore", "open_reader", "open_store", "read_trace"]
