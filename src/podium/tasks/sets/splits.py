"""Splits that share no question, whatever the source of a set has.

A question stands in the latest of its splits alone (test, then validation, then train): what is measured is never
trained on. Where there is train and no validation, a tenth of train becomes it, by a hash of the question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

from podium.errors import ConfigError
from podium.tasks.sets.base import Reading, folded

ORDER = ("train", "validation", "test")
LATER = "questions that stand in a later split too"
_VALIDATION = 0.1


def offered(sources: Collection[str]) -> tuple[str, ...]:
    """The splits of a set whose source has these."""
    return tuple(
        split for split in ORDER if split in sources or (split == "validation" and "train" in sources)
    )


def later_than(split: str) -> tuple[str, ...]:
    """The splits whose questions this one may not have."""
    return ORDER[ORDER.index(split) + 1 :] if split in ORDER else ()


def read_apart(
    sources: Collection[str], splits: Collection[str], read: Callable[[str], Reading]
) -> dict[str, Reading]:
    """Splits of a set.

    Args:
        sources: the splits that the source has.
        splits: those that are wanted.
        read: reads one that the source has; each is read at most once.

    Raises:
        ConfigError: the set has no such split.
    """
    unknown = [split for split in splits if split not in offered(sources)]
    if unknown:
        raise ConfigError(f"There is no split {unknown[0]!r}; there is {', '.join(offered(sources))}.")
    origin = {split: split if split in sources else "train" for split in splits}
    first = min((ORDER.index(source) for source in origin.values()), default=len(ORDER))
    raw = {split: read(split) for split in ORDER[first:] if split in sources}
    return {split: _held_apart(split, origin[split], raw, sources) for split in splits}


def without(reading: Reading, taken: Collection[str], reason: str) -> Reading:
    """A reading without the tasks whose question, folded, or whose id is taken; they are counted for the reason."""
    kept = tuple(task for task in reading.tasks if folded(task) not in taken and task.id not in taken)
    dropped = len(reading.tasks) - len(kept)
    if not dropped:
        return reading
    return Reading(kept, {**reading.skipped, reason: reading.skipped.get(reason, 0) + dropped})


def _held_apart(split: str, source: str, raw: dict[str, Reading], sources: Collection[str]) -> Reading:
    later = {folded(task) for other in later_than(source) if other in raw for task in raw[other].tasks}
    reading = without(raw[source], later, LATER)
    if source == "train" and "validation" not in sources:
        wanted = split == "validation"
        kept = tuple(task for task in reading.tasks if _held_out(folded(task)) == wanted)
        return Reading(kept, reading.skipped)
    return reading


def _held_out(text: str) -> bool:
    return Random(f"validation/{text}").random() < _VALIDATION
