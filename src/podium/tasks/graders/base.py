"""The base classes of graders: settings, as in a TOML file, that grade a response against a gold answer.

A grader extracts the answer from the response (`extraction`), then compares it. The grade contains that answer.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

from podium.config import Settings
from podium.tasks.task import Grade

if TYPE_CHECKING:
    from podium.calls import CallContext


class GraderSettings(Settings):
    """Base of all graders; frozen, so that equal settings grade alike."""

    def gold_problem(self, gold: str) -> str | None:
        """Why this gold answer cannot be used, in half a sentence, or None if it can."""
        return None if gold.strip() else "the gold answer is empty"

    def for_question(self, question: str) -> Self:
        """This grader for the answers to one question. Most graders ignore the question; a judge needs it."""
        return self

    def called_in(self, context: CallContext) -> Self:
        """This grader, whose calls of a model are charged and kept in this context. Most call none; a judge does."""
        return self

    @abstractmethod
    async def __call__(self, response: str, gold: str) -> Grade:
        """Grade a response.

        Raises:
            GraderError: the grader failed, which says nothing about the response.
        """


class PureGrader(GraderSettings):
    """A grader that only compares: it starts no process, calls no model, never fails, and its time is bounded."""

    @abstractmethod
    def judge(self, response: str, gold: str) -> Grade:
        """Grade a response; raises nothing."""

    async def __call__(self, response: str, gold: str) -> Grade:
        return self.judge(response, gold)
