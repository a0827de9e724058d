"""What all graders are: settings, as a TOML file may say them, that judge a response by a gold answer.

A grader finds the answer in the response (`extraction`), and then compares it. What it finds is in its grade.
"""

from __future__ import annotations

from abc import abstractmethod

from podium.config import Settings
from podium.tasks.task import Grade


class GraderSettings(Settings):
    """Base of all graders; frozen, so that equal settings grade alike."""

    def gold_problem(self, gold: str) -> str | None:
        """Why answers cannot be graded by this gold answer, in half a sentence; None: they can."""
        return None if gold.strip() else "the gold answer is empty"

    @abstractmethod
    async def __call__(self, response: str, gold: str) -> Grade:
        """The verdict.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """


class PureGrader(GraderSettings):
    """A grader that only compares: no process, no model, no failure; bounded in time on any text."""

    @abstractmethod
    def judge(self, response: str, gold: str) -> Grade:
        """The verdict; raises nothing."""

    async def __call__(self, response: str, gold: str) -> Grade:
        return self.judge(response, gold)
