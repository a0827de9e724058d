"""GPQA: questions of biology, physics and chemistry that their writers' colleagues can answer and the web cannot.

Source: `Idavidrein/gpqa` on the hub (Rein et al. 2023, arXiv 2311.12022), CC-BY-4.0, gated: accept its terms there,
then log in with `hf auth login`. Split: test. Subsets: diamond (198) within main (448) within extended (546). The
source names the right option first, so options are shuffled by a named seed. Asked for the letter; graded as a letter.
Trap: its authors ask that no question is ever published as plain text: keep runs on it private. Its canary is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from string import ascii_uppercase
from typing import Any, ClassVar, Literal

from podium.tasks.graders.base import GraderSettings
from podium.tasks.graders.choice import Choice
from podium.tasks.sets.base import Entry
from podium.tasks.sets.columns import text
from podium.tasks.sets.hub import HubSet
from podium.tasks.sets.prompts import choice_question

_RIGHT = "Correct Answer"
_WRONG = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


class GPQA(HubSet):
    """The settings of the set."""

    source: ClassVar[str] = "Idavidrein/gpqa"
    licence: ClassVar[str] = "CC-BY-4.0, gated"
    set: Literal["gpqa"] = "gpqa"
    subset: Literal["diamond", "main", "extended"] = "diamond"
    seed: int = 0
    """Names the order of the options."""

    @property
    def label(self) -> str:
        return f"gpqa-{self.subset}"

    @property
    def files(self) -> Mapping[str, tuple[str, ...]]:
        return {"test": (f"gpqa_{self.subset}.csv",)}

    @property
    def grader(self) -> GraderSettings:
        return Choice()

    def entry(self, values: Mapping[str, Any]) -> Entry:
        record = text(values, "Record ID")
        options = [text(values, column) for column in (_RIGHT, *_WRONG)]
        order = list(range(len(options)))
        Random(f"gpqa/{self.seed}/{record}").shuffle(order)
        return Entry(
            choice_question(text(values, "Question"), [options[place] for place in order]),
            ascii_uppercase[order.index(0)],
            record,
            {"family": text(values, "High-level domain"), "subdomain": text(values, "Subdomain")},
        )
