"""One rollout as an `Env`: each round is a transition with a prompt of its own, and the last one earns the reward.

The cookbook gives all transitions of a trajectory the advantage of the summed rewards, so every round learns from how
the rollout ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import tinker
from tinker_cookbook.completers import StopCondition
from tinker_cookbook.renderers import Message as ChatMessage
from tinker_cookbook.renderers import Renderer
from tinker_cookbook.renderers.base import get_text_content
from tinker_cookbook.rl.types import Action, ActionExtra, Env, Metrics, StepResult

from podium.scoring import RolloutRequest, Score, ScoringBackend
from podium.types import Message


class WorkersFailedError(Exception):
    """The workers or the grader failed, which says nothing of the plan: the rollout is left out of its group."""


class PodiumEnv(Env):
    """One rollout.

    Args:
        request: names the rollout, without plans.
    """

    def __init__(self, scoring: ScoringBackend, renderer: Renderer, request: RolloutRequest) -> None:
        self._scoring = scoring
        self._renderer = renderer
        self._request = request

    async def initial_observation(self) -> tuple[tinker.ModelInput, StopCondition]:
        return self._observation(await self._scoring.prompt(self._request) or ())

    async def step(self, action: Action, *, extra: ActionExtra | None = None) -> StepResult:
        """Run the plan that `action` spells.

        Raises:
            WorkersFailedError: workers or the grader failed.
        """
        message, termination = self._renderer.parse_response(action)
        plans = (*self._request.plans, get_text_content(message))
        self._request = self._request.model_copy(
            update={"plans": plans, "truncated": not termination.is_clean}
        )
        if (messages := await self._scoring.prompt(self._request)) is not None:
            observation, stop = self._observation(messages)
            return StepResult(
                reward=0.0, episode_done=False, next_observation=observation, next_stop_condition=stop
            )
        score = await self._scoring.score(self._request)
        if score.reward is None:
            raise WorkersFailedError(score.error)
        return StepResult(
            reward=score.reward,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=[],
            metrics=_metrics(score, rounds=len(plans)),
            logs={"plan": score.plan or "", "error": score.error or "", "trace_id": score.trace_id or ""},
        )

    def _observation(self, messages: Sequence[Message]) -> tuple[tinker.ModelInput, StopCondition]:
        chat = [ChatMessage(role=message.role, content=message.content) for message in messages]
        return self._renderer.build_generation_prompt(chat), self._renderer.get_stop_sequences()


def _metrics(score: Score, *, rounds: int) -> Metrics:
    figures = score.model_dump(include={"correct", "valid", "accepted", "calls", "cost_usd"})
    return {"rounds": rounds} | {name: float(value) for name, value in figures.items()}
