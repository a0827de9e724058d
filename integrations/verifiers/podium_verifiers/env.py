"""The environment: an episode is a rollout, its turns are the rounds, its reward is that of its last round.

A rollout whose workers failed is an error of the episode, which prime-rl leaves out, and never a reward.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack

import verifiers.v1 as vf

from podium.scoring import RolloutRequest, Score, ScoringBackend

GROUP = "verifiers"
"""The rollouts of a task are one group, and so meet one pool, however often the task comes."""


class WorkersFailedError(Exception):
    """The workers or the grader failed, which says nothing of the plan."""


class PodiumEnvConfig(vf.EnvConfig):
    conductor: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    """The policy."""


class PodiumEnv(vf.Env[PodiumEnvConfig]):
    """One scoring session for all episodes of this process."""

    async def start(self) -> None:
        self._open = AsyncExitStack()
        self._rollouts: Counter[str] = Counter()
        self._scoring: ScoringBackend = await self._open.enter_async_context(
            self.config.taskset.open_scoring()
        )

    async def stop(self) -> None:
        await self._open.aclose()

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        name = task.data.id or ""
        request = RolloutRequest(task=name, group=GROUP, rollout=self._rollouts[name])
        self._rollouts[name] += 1
        async with agents.conductor.interaction(task) as interaction:
            while (messages := await self._scoring.prompt(request)) is not None:
                segment = await interaction.turn([message.model_dump() for message in messages])
                if segment.terminated:
                    break
                plan = segment.messages[-1].content or ""
                update = {"plans": (*request.plans, plan), "truncated": interaction.trace.is_truncated}
                request = request.model_copy(update=update)
            if not request.plans:
                return  # The policy could not be asked; the trace says why.
            score = await self._scoring.score(request)
            if score.reward is None:
                raise WorkersFailedError(score.error)
            record(interaction.trace, score, rounds=len(request.plans))


def record(trace: vf.Trace, score: Score, *, rounds: int) -> None:
    """Write the reward of a rollout and what became of its plans onto its trace."""
    trace.record_reward("podium", score.reward or 0.0)
    figures = score.model_dump(include={"correct", "valid", "accepted", "calls", "cost_usd"})
    trace.record_metrics({"rounds": float(rounds)} | {name: float(value) for name, value in figures.items()})
    trace.info["podium"] = score.model_dump(mode="json")
