"""The ledger of looks: a file beside a task set that counts how often a split was evaluated on.

Each evaluation on a split other than train is a look. Choices that follow looks fit the split, so a table says how many
there were. A run on test is declared before it runs. The same configuration evaluated again is no further look, because
its figures are the same; but it is one if it was declared anew, with another note, as after a change of the program.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from podium.errors import ConfigError
from podium.rollout.run_folder import Rows
from podium.types import Value

TRAIN, TEST = "train", "test"


class Look(Value):
    """One line of the ledger."""

    date: str
    """ISO 8601, UTC."""
    tasks: str
    split: str
    config: str
    """Digest of all settings on which the figures depend."""
    planners: tuple[str, ...]
    """Labels of the rows."""
    note: str = ""
    """What for."""
    declared: bool = False
    """Whether this line announces a run that had not begun; then it is no look."""


def ledger_file(tasks: str, run: Path | None) -> Path | None:
    """The ledger of a task set: beside its file, else beside the run's folder; None: it has neither."""
    if Path(tasks).is_file():
        return Path(tasks).with_suffix(".looks.jsonl")
    return None if run is None else run.parent / f"{Path(tasks).name}.looks.jsonl"


class EvaluationLedger:
    """The ledger in a file, which is made with the first line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[Look, ...]:
        """All lines, oldest first.

        Raises:
            ConfigError: a line is damaged.
        """
        try:
            return tuple(Look.model_validate(row) for row in Rows(self.path).read())
        except ValidationError as error:
            raise ConfigError(
                f"{self.path} is no ledger of looks ({error.errors()[0]['msg']}); restore the file."
            ) from None

    def of_split(self, split: str) -> tuple[Look, ...]:
        """The looks at a split, oldest first, without declarations."""
        return tuple(look for look in self.read() if look.split == split and not look.declared)

    def is_declared(self, split: str, config: str, note: str | None = None) -> bool:
        """Whether a run with this configuration was declared, with this note if one is given."""
        declared = self._declarations(split, config)
        return bool(declared) if note is None else any(look.note == note for look in declared)

    def declare(self, tasks: str, split: str, config: str, planners: tuple[str, ...], note: str) -> None:
        """Announce a run before it begins, unless it was announced with this note.

        Raises:
            StoreError: the file cannot be written.
        """
        note = note.strip()
        if not self.is_declared(split, config, note):
            self._add(tasks, split, config, planners, note, declared=True)

    def count(
        self, tasks: str, split: str, config: str, planners: tuple[str, ...], note: str = ""
    ) -> tuple[Look, ...]:
        """Add a look, unless this configuration has one with the note of its newest declaration. Returns all looks at
        the split so far.

        Args:
            note: what for, if the run was not declared before.

        Raises:
            StoreError: the file cannot be written.
        """
        notes = [look.note for look in self.of_split(split) if look.config == config]
        declared = self._declarations(split, config)
        if not notes or (declared and declared[-1].note not in notes):
            self._add(tasks, split, config, planners, declared[-1].note if declared else note)
        return self.of_split(split)

    def _declarations(self, split: str, config: str) -> tuple[Look, ...]:
        declared = (look for look in self.read() if look.declared)
        return tuple(look for look in declared if (look.split, look.config) == (split, config))

    def _add(
        self,
        tasks: str,
        split: str,
        config: str,
        planners: tuple[str, ...],
        note: str,
        *,
        declared: bool = False,
    ) -> None:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        look = Look(
            date=date,
            tasks=tasks,
            split=split,
            config=config,
            planners=planners,
            note=note,
            declared=declared,
        )
        Rows(self.path).append(look.model_dump(mode="json"))


def sentence_on(looks: tuple[Look, ...], config: str) -> str:
    """What a table says of its split: how often it was looked at, this configuration's look included, and what for."""
    number = max(place for place, look in enumerate(looks, 1) if look.config == config)
    this = looks[number - 1]
    said = f"Look {number} at the {this.split} split of {Path(this.tasks).name}"
    if this.note:
        return f"{said}, declared: {this.note}"
    return f"{said}{', not declared' * (this.split == TEST)}."
