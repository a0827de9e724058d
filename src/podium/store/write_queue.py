"""A bounded queue of rows for a database, and the one thread that writes them.

`put` never waits. Waiting rows are written together. While the database cannot be reached, they wait and the thread
retries. When too many wait, or the process ends, it spills them to files, and moves them to the database when that
works again, or when the same store is next opened. Rows that the database refuses for good, and lines of these files
that are no traces, are put into other files and stay there.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from podium.errors import StoreError
from podium.files.atomic import atomic_file
from podium.trace.serialization import DamagedTraceError, TraceRow, read_document, to_row

_BATCH = 1000
_BATCH_CHARACTERS = 8 * 2**20
_GATHER_S = 0.02
"""Seconds that a row waits for further rows, unless a caller waits, since a transaction costs more than ten rows."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_RECENT_S = 1.0
_LOG = logging.getLogger("podium.store")


class WriteQueue:
    """The rows that wait, and the thread that writes them.

    Args:
        write: writes all rows or none. It raises a `StoreError`, which says whether a retry may help.
        store_name: the store's name in messages.
        spill_folder: the folder for spill files.
        max_rows, max_characters: the most rows, and characters of all documents, that may wait.
        close_timeout_s: seconds for which `close` tries to write.
    """

    def __init__(
        self,
        write: Callable[[Sequence[TraceRow]], None],
        store_name: str,
        *,
        spill_folder: Path,
        max_rows: int = 20_000,
        max_characters: int = 512 * 2**20,
        close_timeout_s: float = 0.0,
    ) -> None:
        self._write = write
        self._store_name = store_name
        self._spill_folder = spill_folder
        self._max_rows = max_rows
        self._max_characters = max_characters
        self._close_timeout_s = close_timeout_s
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        """For the thread that writes."""
        self._progress = threading.Condition(self._lock)
        """For callers that wait for their rows to be written."""
        self._waiting: deque[TraceRow] = deque()
        self._characters = 0
        self._put = self._done = self._failures = 0
        """How many rows were put, how many of them are written or spilled, and how many tries to write have failed."""
        self._callers = 0
        """How many callers wait now."""
        self._error: StoreError | None = None
        self._failed_at = 0.0
        """When writing last failed, on the monotonic clock."""
        self._refused: StoreError | None = None
        """The error of a row that the database refused for good. `flush` raises it once."""
        where = store_name if "://" in store_name else os.path.realpath(store_name)
        self._prefix = f"unwritten-{sha256(os.fsencode(where)).hexdigest()[:8]}"
        self._spilled: list[Path] = []
        self._lost = 0
        self._close_by: float | None = None
        self._thread = threading.Thread(target=self._run, name="podium-trace-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._waiting)

    @property
    def write_problem(self) -> str | None:
        """A sentence that says why rows cannot be written now. None if they can be written."""
        error, waiting = self._error, len(self._waiting)
        return None if error is None else f"{error} Traces that wait for it: {waiting}."

    def put(self, row: TraceRow) -> None:
        """Queue `row`.

        Raises:
            StoreError: too many rows wait.
        """
        with self._changed:
            if self._close_by is not None:
                raise RuntimeError(f"the trace store {self._store_name} is closed")
            many = self._error is not None and len(self._waiting) >= self._max_rows
            if many or self._characters >= self._max_characters:
                reason = self._error or f"{self._store_name} is slower than traces are made."
                raise StoreError(
                    f"A trace cannot be kept: {len(self._waiting)} others already wait to be written. {reason}"
                )
            self._waiting.append(row)
            self._characters += len(row.document)
            self._put += 1
            # At other lengths the thread is collecting rows and need not wake.
            if len(self._waiting) in (1, _BATCH):
                self._changed.notify()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all rows that were put before are written or spilled, until a try to write fails, or until the
        seconds are over. Returns whether they are written or spilled."""
        with self._lock:
            rows, failures = self._put, self._failures
            if self._done < rows:
                self._callers += 1
                self._changed.notify()
                self._progress.wait_for(lambda: self._done >= rows or self._failures > failures, seconds)
                self._callers -= 1
            return self._done >= rows

    def flush(self) -> None:
        """Wait until all rows that were put before are written.

        Raises:
            StoreError: some rows cannot be written now and keep waiting, or were refused for good since the last flush.
        """
        with self._lock:
            if self._close_by is not None:
                raise RuntimeError(f"the trace store {self._store_name} is closed")
        while not self.wait():
            if (error := self._error) is not None:
                raise error
        with self._lock:
            refused, self._refused = self._refused, None
            if refused is not None:
                # The caller learns of it now, so `close` does not raise for these files too.
                self._spilled = [path for path in self._spilled if not path.name.startswith("refused")]
                raise refused

    def close(self) -> None:
        """Write the rows that wait, and end the thread. Calling this twice is fine.

        Raises:
            StoreError: rows could not be written. The message names their spill files.
        """
        with self._changed:
            first = self._close_by is None
            self._close_by = self._close_by or time.monotonic() + self._close_timeout_s
            self._changed.notify()
        self._thread.join()
        there = [str(path) for path in self._spilled if path.exists()]
        if first and (there or self._lost):
            files = ", ".join(there)
            lies = (
                f" are in {files}: those that it accepts are written when it is next opened" if there else ""
            )
            lost = f", {self._lost} are lost" if self._lost else ""
            reason = "" if self._error is None else f" {self._error}"
            raise StoreError(f"Traces that could not be written to {self._store_name}{lies}{lost}.{reason}")

    def _run(self) -> None:
        pause = _FIRST_PAUSE_S
        self._load_spilled()
        while batch := self._next_batch():
            try:
                if (failure := self._recent_failure) is not None:
                    raise failure
                refused = self._write_accepted(batch)
            except StoreError as error:
                self._set_error(error)
                over = self._close_timed_out
                if (over or self._is_half_full()) and (self._spill_rows(batch) or over):
                    self._remove(batch)
                else:
                    self._pause(pause)
                    pause = min(_LONGEST_PAUSE_S, 2 * pause)
                continue
            pause = _FIRST_PAUSE_S
            for row, reason in refused:
                self._spill_rows([row], "refused")
                self._refused = reason
            self._remove(batch)
            if self._error is not None:
                self._set_error(None)
                self._load_spilled()

    def _is_half_full(self) -> bool:
        return 2 * len(self._waiting) >= self._max_rows or 2 * self._characters >= self._max_characters

    def _pause(self, seconds: float) -> None:
        """Wait this long, or until a caller waits or `close` is called, or until the time of `close` is over."""
        with self._changed:
            if self._close_by is None:
                self._changed.wait_for(lambda: self._callers or self._close_by is not None, seconds)
                return
        time.sleep(max(0.0, min(seconds, self._close_by - time.monotonic())))

    def _next_batch(self) -> list[TraceRow]:
        """The rows to write together. They stay in the queue. There are none once the queue is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._close_by is not None)
            self._changed.wait_for(
                lambda: self._callers or self._close_by is not None or len(self._waiting) >= _BATCH,
                _GATHER_S,
            )
            batch: list[TraceRow] = []
            characters = 0
            for row in self._waiting:
                characters += len(row.document)
                if batch and (len(batch) == _BATCH or characters > _BATCH_CHARACTERS):
                    break
                batch.append(row)
            return batch

    @property
    def _close_timed_out(self) -> bool:
        """Whether the time of `close` is over."""
        return self._close_by is not None and time.monotonic() >= self._close_by

    @property
    def _recent_failure(self) -> StoreError | None:
        """Why writing failed a moment ago, if the time of `close` is over. Another try could take as long as the
        database waits for a lock."""
        return (
            self._error if self._close_timed_out and time.monotonic() - self._failed_at < _RECENT_S else None
        )

    def _write_accepted(self, rows: Sequence[TraceRow]) -> list[tuple[TraceRow, StoreError]]:
        """Write rows, and return those that the database refuses for good, each with the reason.

        Raises:
            StoreError: they cannot be written now; some may be written already, and may be written again.
        """
        try:
            self._write(rows)
        except StoreError as error:
            if error.retryable:
                raise
            reason = error
        except Exception as error:  # A bug. If this thread died, everything would wait for it.
            _LOG.exception("Writing to the trace store %s failed.", self._store_name)
            reason = StoreError(f"{type(error).__name__}: {error}", retryable=False)
        else:
            return []
        if len(rows) > 1:
            return [refused for row in rows for refused in self._write_accepted([row])]
        _LOG.error("The trace %s cannot be kept: %s", rows[0].listed.id, reason)
        return [(rows[0], reason)]

    def _remove(self, rows: Sequence[TraceRow]) -> None:
        """Remove rows that are written or spilled from the queue, and wake the callers that wait for them."""
        with self._changed:
            for _ in rows:
                self._characters -= len(self._waiting.popleft().document)
            self._done += len(rows)
            self._progress.notify_all()

    def _set_error(self, error: StoreError | None) -> None:
        if error is not None and self._error is None:
            _LOG.error("%s Traces wait, and are written when that works again.", error)
        elif error is None and self._error is not None:
            _LOG.warning("The trace store %s can be written again.", self._store_name)
        with self._changed:
            self._error = error
            self._failures += error is not None
            self._failed_at = time.monotonic()
            self._progress.notify_all()

    def _spill_rows(self, rows: Sequence[TraceRow], prefix: str | None = None) -> bool:
        """Write all rows or none to a spill file. Returns False if that failed."""
        try:
            path = self._spill_lines([_line(row) for row in rows], prefix or self._prefix)
        except OSError as error:
            if prefix is not None or self._close_by is not None:
                self._lost += len(rows)
                _LOG.critical(
                    "%d traces are lost: %s cannot be written (%s).",
                    len(rows),
                    self._spill_folder,
                    error.strerror,
                )
            return False
        self._spilled.append(path)
        return True

    def _spill_lines(self, lines: Sequence[bytes], prefix: str) -> Path:
        path = self._spill_folder / f"{prefix}-{time.time_ns()}-{os.getpid()}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as part:
            part.touch(mode=0o600)
            part.write_bytes(b"".join(lines))
        _LOG.error("%d traces or lines of a spill file are in %s.", len(lines), path)
        return path

    def _load_spilled(self) -> None:
        """Write the spilled rows of all processes to the database. Writing a row twice is harmless."""
        for path in sorted(self._spill_folder.glob(f"{self._prefix}-*.jsonl")):
            try:
                if refused := self._write_spilled(path):
                    self._spill_lines(refused, "refused")
            except FileNotFoundError:
                continue
            except OSError as error:
                _LOG.error("The spilled traces in %s cannot be moved: %s", path, error)
                continue
            except StoreError:
                return
            path.unlink(missing_ok=True)
            _LOG.warning("The traces in %s are written, but for %d that are refused.", path, len(refused))

    def _write_spilled(self, path: Path) -> list[bytes]:
        """Write the rows of a spill file. Returns the lines that are no traces or that the database refuses for good.

        Raises:
            OSError: the file cannot be read.
            StoreError: the database cannot be used now.
        """
        rows: list[TraceRow] = []
        refused: list[bytes] = []
        with path.open("rb") as lines:
            for line in filter(bytes.strip, lines):
                try:
                    rows.append(to_row(read_document(line)))
                except DamagedTraceError as error:
                    _LOG.error("A line of %s cannot be kept: it is not a trace%s.", path, error)
                    refused.append(line.rstrip(b"\r\n") + b"\n")
        return refused + ([_line(row) for row, _ in self._write_accepted(rows)] if rows else [])


def _line(row: TraceRow) -> bytes:
    return f"{row.document}\n".encode()
