"""Responses on their way into a recording.

They are gathered in an SQLite file, in any order and any amount, so that memory stays small and a recording that
was interrupted goes on; `write` then puts them in order into one parquet file, with its header beside it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from podium.errors import RunMismatchError, UsageError
from podium.recordings.model import SPLITS, Header, RecordedQuestion, RecordedWorker, Response

_TABLES = """
create table if not exists made_by (configuration text);
create table if not exists question (id text primary key, text text, gold text, family text, split text);
create table if not exists response (
  question text, worker text, sample integer, text text, answer text, score real,
  input_tokens integer, output_tokens integer, estimated integer, seconds real,
  primary key (question, worker, sample)
) without rowid;
create table if not exists simulated (worker text primary key) without rowid;
"""
_NAMES = {"made_by", "question", "response", "simulated"}
_ROWS = """
select q.id, q.text, q.gold, q.family, q.split, r.worker,
  row_number() over (partition by r.question, r.worker order by r.sample) - 1, r.text, r.answer, r.score,
  r.input_tokens, r.output_tokens, r.estimated, r.seconds
from question q join response r on r.question = q.id order by q.id, r.worker, r.sample
"""
_KNOWN = """
select worker, count(*), count(score), avg(case when score is null then null else score >= 0.999 end)
from response join question on question.id = response.question group by worker order by worker
"""
_BATCH = 4096
"""Rows of a row group: few enough that each question's text is stored once in a group."""


def split_by_hash(question_id: str) -> str:
    """The split of a question whose source has none: 70, 15 and 15 % by a hash of its id."""
    place = int.from_bytes(hashlib.sha256(f"split/{question_id}".encode()).digest()[:4], "big") / 2**32
    return SPLITS[0] if place < 0.7 else SPLITS[1] if place < 0.85 else SPLITS[2]


class Gathering:
    """An SQLite file of questions and responses.

    Raises:
        UsageError: the file is something else.
    """

    def __init__(self, path: Path | None = None) -> None:
        """`path`: kept from run to run; None: a temporary file."""
        try:
            self._db = sqlite3.connect(path or "", isolation_level=None)
            _refuse_others(self._db)
            self._db.executescript(_TABLES)
            self._db.execute("pragma synchronous = off" if path is None else "pragma journal_mode = wal")
            self._db.execute("begin")
        except sqlite3.DatabaseError:
            raise UsageError(f"{path} is not a gathering of responses; choose another place.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def identify(self, configuration: Mapping[str, Any]) -> None:
        """Say what is gathered here; the first time it is noted.

        Raises:
            RunMismatchError: it was begun with another configuration.
        """
        wanted = json.dumps(configuration, sort_keys=True, ensure_ascii=False)
        found = self._db.execute("select configuration from made_by").fetchone()
        if found is None:
            self._db.execute("insert into made_by values (?)", (wanted,))
        elif found[0] != wanted:
            before = json.loads(found[0])
            if unknown := sorted(configuration.keys() - before.keys()):
                raise RunMismatchError(
                    f"What was gathered so far does not say its {', '.join(unknown)}, as Podium did not note them "
                    "then; take another name for the recording."
                )
            keys = before.keys() | configuration.keys()
            differing = sorted(key for key in keys if before.get(key) != configuration.get(key))
            raise RunMismatchError(
                f"What was gathered so far was asked with other settings ({', '.join(differing)}); "
                "give the same ones, or another name for the recording."
            )

    def add_question(self, question: RecordedQuestion) -> None:
        """Keep a question; the first of an id stays."""
        self._db.execute(
            "insert or ignore into question values (?, ?, ?, ?, ?)",
            _storable(astuple(question)),
        )

    def add(self, question_id: str, response: Response) -> bool:
        """Keep a response; False when one of the same question, worker and sample is there already."""
        done = self._db.execute(
            "insert or ignore into response values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _storable((question_id, *astuple(response))),
        )
        return done.rowcount > 0

    def has(self, question_id: str, worker: str, sample: int) -> bool:
        """Whether that response is here."""
        found = self._db.execute(
            "select 1 from response where question = ? and worker = ? and sample = ?",
            (question_id, worker, sample),
        )
        return found.fetchone() is not None

    def note_simulated(self, worker: str) -> None:
        """Say that a worker is a simulation; the header says it too."""
        self._db.execute("insert or ignore into simulated values (?)", _storable((worker,)))

    @property
    def simulated(self) -> frozenset[str]:
        """Workers that are simulations."""
        return frozenset(worker for (worker,) in self._db.execute("select worker from simulated"))

    @property
    def workers(self) -> frozenset[str]:
        """Workers with a response."""
        return frozenset(worker for (worker,) in self._db.execute("select distinct worker from response"))

    def commit(self) -> None:
        """On return, what was added is on the disk."""
        self._db.execute("commit")
        self._db.execute("begin")

    def drop_repeats(self) -> int:
        """Leave out questions whose wording an earlier one has too; returns how many.

        A replay worker knows a question by its text, so two of one text could not be told apart.
        """
        repeated = "select id from question where id not in (select min(id) from question group by text)"
        count: int = self._db.execute(f"select count(*) from ({repeated})").fetchone()[0]
        self._db.execute(f"delete from response where question in ({repeated})")
        self._db.execute(f"delete from question where id in ({repeated})")
        return count

    def drop_unanswered(self) -> int:
        """Leave out questions that nobody answered; returns how many."""
        done = self._db.execute("delete from question where id not in (select question from response)")
        return done.rowcount

    def write(
        self,
        path: Path,
        *,
        name: str,
        source: str = "",
        licence: str = "",
        left_out: Sequence[str] = (),
        known: Mapping[str, RecordedWorker] | None = None,
    ) -> Header:
        """Write all that is gathered to `path` and its header beside it, whole or not at all.

        Samples are counted anew from 0, for each question and worker, in the order of the numbers that they have:
        sources number them by seeds, or from 1, and leave gaps.

        Args:
            known: what is known of workers besides their responses, by name.

        Raises:
            UsageError: nothing was gathered.
        """
        unanswered = self.drop_unanswered()
        notes = list(left_out)
        if repeats := self.drop_repeats():
            notes.append(f"questions whose wording another one has too ({repeats})")
        if unanswered:
            notes.append(f"questions that nobody answered ({unanswered})")
        simulated = self.simulated
        workers = tuple(
            (known or {})
            .get(worker, RecordedWorker(name=worker))
            .model_copy(
                update={
                    "simulated": worker in simulated,
                    "responses": count,
                    "judged": judged,
                    "accuracy": share,
                }
            )
            for worker, count, judged, share in self._db.execute(_KNOWN)
        )
        if not workers:
            raise UsageError("There is no response to write; check what was given as the source.")
        part = path.with_name(f".{path.name}.part")
        _write_rows(part, self._db.execute(_ROWS))
        splits = self._db.execute("select split, count(*) from question where split is not null group by 1")
        (questions,) = self._db.execute("select count(*) from question").fetchone()
        header = Header(
            name=name,
            source=source,
            licence=licence,
            workers=workers,
            questions=questions,
            responses=sum(worker.responses for worker in workers),
            splits=dict(splits.fetchall()),
            left_out=tuple(notes),
            sha256=hashlib.sha256(part.read_bytes()).hexdigest(),
        )
        beside = header_path(path)
        beside_part = beside.with_name(f".{beside.name}.part")
        beside_part.write_text(
            json.dumps(header.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        part.replace(path)
        beside_part.replace(beside)
        return header


def _refuse_others(db: sqlite3.Connection) -> None:
    """Raise where the file is a database of something else."""
    tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
    if not tables <= _NAMES:
        raise sqlite3.DatabaseError


def _storable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row, with a mark for each half of a letter: a text that was cut may end in one, which no file can hold."""
    return tuple(
        value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for value in row
    )


def header_path(path: Path) -> Path:
    """Where the header of the recording at `path` is."""
    return path.with_suffix(".json")


def _write_rows(path: Path, rows: Iterator[tuple[Any, ...]]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - an optional extra

    from podium.recordings.columns import schema, to_batch  # noqa: PLC0415

    with pq.ParquetWriter(path, schema(), compression="zstd", compression_level=9) as writer:
        batch: list[tuple[Any, ...]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == _BATCH:
                writer.write_batch(to_batch(batch))
                batch.clear()
        if batch:
            writer.write_batch(to_batch(batch))
