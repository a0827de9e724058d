"""Counts the looks of `podium eval` with options at a task set's split, and declares runs on test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from podium.errors import StoreError, UsageError
from podium.evals.fingerprints import digest, fingerprints
from podium.evals.looks import TRAIN, EvaluationLedger, ledger_file, sentence_on
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool

_ROWS = ("Conductor", "all baselines")


@dataclass(frozen=True, slots=True)
class EvaluationDeclaration:
    """The look of one command."""

    ledger: EvaluationLedger
    tasks: str
    split: str
    config: str

    @classmethod
    def of(
        cls,
        measured: Mapping[str, Any],
        team: TeamSettings,
        pool: Pool,
        run: Path | None,
        note: str | None,
    ) -> Self | None:
        """The look at a split, declared if there is a note; None: this task set or split has no ledger.

        Args:
            measured: all parameters on which the figures depend, beside the Conductor.
            team: the team whose Conductor is compared.
            pool: its workers, opened.
            note: what a run on test or validation is for; None: it is not declared.

        Raises:
            UsageError: a note on the training split, or without a ledger.
            StoreError: the declaration cannot be written.
        """
        tasks, split = str(measured["tasks"]), str(measured["split"])
        file = ledger_file(tasks, run)
        if note is not None and (split == TRAIN or file is None or not note.strip()):
            raise UsageError(
                "--declare NOTE says what a run on test or validation, of a file or in a run's folder, is for; "
                "leave it out here."
            )
        if file is None or split == TRAIN:
            return None
        others = {measured["versus"], measured["untrained"]} - {None, "none"}
        planners = [team, *(team.with_checkpoint(name) for name in sorted(others))]
        described = {
            **{key: str(value) for key, value in measured.items()},
            **{key: getattr(team, key).model_dump(mode="json") for key in ("conductor", "plan", "budget")},
            "files": fingerprints(tasks, team.workers_file, pool, planners),
        }
        look = cls(EvaluationLedger(file), tasks, split, digest(described))
        if note is not None:
            look.ledger.declare(tasks, split, look.config, _ROWS, note)
        return look

    def count(self) -> tuple[str, ...]:
        """Count the look. Returns a sentence for the table; none if the ledger cannot be written."""
        try:
            looks = self.ledger.count(self.tasks, self.split, self.config, _ROWS)
        except StoreError as error:
            print(f"This look is not counted: {error}", file=sys.stderr)
            return ()
        return (sentence_on(looks, self.config),)
