"""The stores that keep traces in SQLite and PostgreSQL: tables, queries, and the queue of traces to write.

Only this package loads SQLAlchemy. The values of a trace do not depend on it.
"""

from podium.store.trace_store import TraceStore

__all__ = ["TraceStore"]
