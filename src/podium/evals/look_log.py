"""The log of looks: a file beside a task set that counts how often a split was evaluated on.

Each evaluation on a split other than train is a look. Choices that are made after looks fit the split, so a table says
how many looks there were. A look is written down before the run begins. A run on test says what it is for: it is
declared. If the same configuration is evaluated again, that is a further look only if it is declared with another note,
as after a change of the program: else its figures are the same.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field, ValidationError

from podium.errors import ConfigError
from podium.rollout.run_folder import JsonLines
from podium.types import FrozenModel

TRAIN, TEST = "train", "test"


class Look(FrozenModel):
    """One line of the log: an evaluation on a split."""

    date: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    tasks: str
    split: str
    config: str
    """Digest of all settings on which the figures depend."""
    planners: tuple[str, ...]
    note: str = ""
    """The purpose of the evaluation. Empty if it was not declared."""


def looks_file(tasks: str, run: Path) -> Path:
    """The log of a task set. It is beside the task set's file or, if there is no file, beside the run's folder."""
    file = Path(tasks)
    return file.with_suffix(".looks.jsonl") if file.is_file() else run.parent / f"{file.name}.looks.jsonl"


class LookLog:
    """The log in a file, which is made with the first line. Writing raises a `StoreError` if the file cannot be
    written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[Look, ...]:
        """All lines, oldest first.

        Raises:
            ConfigError: a line is damaged.
        """
        try:
            return tuple(Look.model_validate(row) for row in JsonLines(self.path).read())
        except ValidationError as error:
            raise ConfigError(
                f"{self.path} is no log of looks ({error.errors()[0]['msg']}); restore the file."
            ) from None

    def looks(self, split: str) -> tuple[Look, ...]:
        """The looks at a split, oldest first."""
        return tuple(entry for entry in self.read() if entry.split == split)

    def is_declared(self, split: str, config: str) -> bool:
        return any(look.config == config and look.note for look in self.looks(split))

    def add(self, entry: Look) -> tuple[Look, ...]:
        """Add a look, unless this configuration has one, with this note if there is a note. Returns all looks at the
        split so far."""
        notes = [look.note for look in self.looks(entry.split) if look.config == entry.config]
        if not notes or (entry.note and entry.note not in notes):
            JsonLines(self.path).append(entry.model_dump(mode="json"))
        return self.looks(entry.split)


def describe_looks(looks: tuple[Look, ...], config: str) -> str:
    """A sentence for a table: how often its split was looked at, including the present look, and for what purposes."""
    number = max(count for count, look in enumerate(looks, 1) if look.config == config)
    this = looks[number - 1]
    sentence = f"Look {number} at the {this.split} split of {Path(this.tasks).name}"
    if this.note:
        return f"{sentence}, declared: {this.note}"
    return f"{sentence}{', not declared' * (this.split == TEST)}."
