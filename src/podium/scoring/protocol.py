"""The requests of a trainer to the scoring service, and the replies, as values that are sent as JSON.

`ScoringSession` answers in this process, and `ScoringClient` sends requests to a service over HTTP. Both are a
`ScoringBackend`, so a trainer, an environment or a notebook need not know which of them it uses.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from pydantic import Field

from podium.errors import BudgetExceededError, ConfigError, PodiumError, ServiceError, StoreError, UsageError
from podium.rollout import Reward
from podium.rollout.collapse import PlanStructure
from podium.types import FrozenModel, Message

SETTINGS_HEADER = "X-Podium-Settings"
"""The HTTP header with the digest of the settings that a client expects."""


class RolloutRequest(FrozenModel):
    """One rollout, with the plans that the policy has written so far."""

    task: str
    """The id of a task of the session."""
    group: str
    """The name of the rollout's group. The rollouts of a group share their pool and level of cost sensitivity."""
    rollout: int = Field(default=0, ge=0)
    """The number of the rollout in its group. With `group` and `task`, it seeds the workers' randomness."""
    plans: tuple[str, ...] = ()
    """The policy's text in each round, word for word. The earliest round comes first."""
    truncated: bool = False
    """Whether a token limit cut off the latest plan. Then a draft inside an unfinished thought does not count as a
    plan."""


class Score(PlanStructure):
    """The reward of a rollout's latest plan, and what happened when it ran."""

    reward: float | None
    """The reward in [0, 1]. None if workers or the grader failed, so that the rollout has to be left out."""
    rollout_reward: float | None = None
    """The reward of all rounds so far. None if workers or the grader failed."""
    parts: Reward | None = None
    valid: bool = False
    """Whether the latest plan could be read."""
    correct: bool = False
    """Whether the answer after this round is right."""
    accepted: bool = False
    """Whether the latest plan accepts the answer of the round before."""
    finished: bool = True
    """Whether no further round follows, since the rounds are used up, or the plan was unreadable or an acceptance."""
    error: str | None = None
    """Why the plan could not be read, or what failed. None if all went well."""
    plan: str | None = None
    """The workflow in canonical text, in which equal plans have equal texts. None if there is none."""
    calls: int = 0
    cost_usd: float = 0.0
    """Dollars of all rounds so far, as if nothing came from the response cache."""
    recorded: bool = False
    trace_id: str | None = None


class SessionInfo(FrozenModel):
    """A description of a session, by which a run can check that the session fits."""

    tasks: tuple[str, ...]
    """The ids of the tasks, in order."""
    pool: tuple[str, ...]
    """Names of the workers, in order."""
    rounds: int
    """The most plans of a rollout."""
    digest: str
    """The digest of the settings (`ScoringSettings.digest`). Sessions with equal digests score alike."""
    settings: dict[str, Any]
    """The settings by which the session scores (`ScoringSettings.scoring`)."""


class ErrorReply(FrozenModel):
    """An error of the service as JSON. The client raises the same error."""

    kind: str
    """The name of the error's class, or of its nearest base class in `_KINDS`; else "ServiceError"."""
    message: str

    @classmethod
    def of(cls, error: PodiumError) -> Self:
        """The reply for an error of the service."""
        kinds = (kind for kind in _KINDS if isinstance(error, kind))
        return cls(kind=next(kinds, ServiceError).__name__, message=str(error))

    @property
    def error(self) -> PodiumError:
        """The error that the client raises."""
        kinds = {kind.__name__: kind for kind in _KINDS}
        return kinds.get(self.kind, ServiceError)(self.message)


_KINDS: tuple[type[PodiumError], ...] = (BudgetExceededError, ConfigError, UsageError, StoreError)
"""The kinds of errors besides `ServiceError`, which stands for all others. Each class comes before its base classes."""


class ScoringBackend(Protocol):
    """Writes prompts, runs plans and rewards them. Concurrent calls are safe."""

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        """The messages of the prompt for a rollout's next plan. None if no further round follows.

        Raises:
            BudgetExceededError: the dollars that the run or the day may cost are spent.
            ConfigError: the session has no such task.
        """
        ...

    async def score(self, request: RolloutRequest) -> Score:
        """Run the plans of a rollout, grade the answer and reward the latest plan.

        The rounds before the latest are run again. The response cache answers their calls, and scripted workers give
        the same answers again.

        Raises:
            BudgetExceededError: the dollars that the run or the day may cost are spent.
            ConfigError: the session has no such task.
        """
        ...
