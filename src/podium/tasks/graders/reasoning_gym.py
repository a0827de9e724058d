"""The grader of questions that reasoning-gym made: its own verifier, which knows all answers that are right.

The answer stands alone where `extraction` finds it, several lines of it inside `<answer>...</answer>`. It is right or
wrong: the part of a score that the library gives for coming near, or for holding the right answer among others, is not
given; what its verifiers take too lightly is refused (`tasks.gym.strict`).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.tasks.graders.extraction import Place, find
from podium.tasks.gym import Draw, Workshop
from podium.tasks.task import Grade


@dataclass(frozen=True, slots=True)
class ReasoningGymVerifier:
    """1 for an answer that the generator's verifier gives its whole score, else 0.

    So is an answer that takes it more than a few processor seconds, or that it cannot read, 0.
    """

    workshop: Workshop
    draw: Draw
    digest: str
    """Of the question, so that another version of the library does not judge answers to another one."""
    answer: Place = "final"
    """Where the answer stands in the response."""

    async def __call__(self, response: str, gold: str) -> Grade:
        """The verdict; the gold answer is one of several, and the library has its own.

        Raises:
            GraderError: the process that verifies ended, or knows another question by this name.
        """
        found = find(response, self.answer)
        if found is None:
            return Grade(0.0)
        return Grade(await self.workshop.judge(self.draw, found, self.digest), found)
