"""Counts the looks of `podium eval` with options at a task set's split, and declares runs on test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from podium.cli.options import PlannerOptions
from podium.errors import StoreError, UsageError
from podium.evals.looks import TEST, TRAIN, Looks, ledger_file, sentence_on
from podium.evals.suite.cells import digest, fingerprint
from podium.workers.pool import pool_file

_ROWS = ("Conductor", "all baselines")


def count_look(
    measured: Mapping[str, Any], conductor: PlannerOptions, run: Path | None, note: str | None
) -> tuple[str, ...]:
    """Count a look in the task set's ledger, if it has one. Returns a sentence for the table.

    Args:
        measured: all parameters on which the figures depend, beside the Conductor.
        note: what a run on the test split is for; it is declared with this note. None: it is not declared.

    Raises:
        UsageError: a note without a test split, or without a ledger.
    """
    tasks, split = str(measured["tasks"]), str(measured["split"])
    file = ledger_file(tasks, run)
    if note is not None and (split != TEST or file is None or not note.strip()):
        raise UsageError(
            "--declare NOTE says what a run on the test split of a file, or in a run's folder, is for; leave it out."
        )
    if file is None or split == TRAIN:
        return ()
    files = (
        tasks,
        str(pool_file(str(measured["pool"]))),
        conductor.conductor or "",
        measured["versus"] or "",
    )
    config = digest(
        {
            **{key: str(value) for key, value in measured.items()},
            "conductor": asdict(conductor),
            "files": [fingerprint(Path(name)) for name in files],
        }
    )
    ledger = Looks(file)
    try:
        if note is not None and not ledger.is_declared(split, config):
            ledger.declare(tasks, split, config, _ROWS, note.strip())
        elif split == TEST and not ledger.is_declared(split, config):
            print(
                "This run on the test split was not declared: say with --declare NOTE what it is for, or choose with "
                "--split validation.",
                file=sys.stderr,
            )
        looks = ledger.count(tasks, split, config, _ROWS)
    except StoreError as error:
        print(f"This look is not counted: {error}", file=sys.stderr)
        return ()
    return (sentence_on(looks, config),)
