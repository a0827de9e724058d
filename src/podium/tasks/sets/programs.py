"""Sets whose answers are programs, run against tests in a sandbox."""

from __future__ import annotations

from pydantic import Field

from podium.tasks.graders.code import Code
from podium.tasks.sets.hub import HubSet


class ProgramSet(HubSet):
    """A set graded by `Code`."""

    grading: Code = Field(default_factory=Code)
    """What a program may use, and whether a weak sandbox will do."""

    @property
    def grader(self) -> Code:
        return self.grading
