"""Takes the samples of a batch through their rounds, for either engine and for evaluations.

The scoring session makes the prompts, the engine writes the completions, and the session runs and rewards each plan as
soon as its last token is drawn, or, if workers need the same cores, when all are drawn. The session belongs to the
event loop. The engine trains in a separate thread, in which everything here runs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from podium.conductor.codec import PromptCodec
from podium.errors import PodiumError
from podium.rollout import discounted_rewards
from podium.scoring import RolloutRequest, Score, ScoringBackend
from podium.scoring.protocol import ErrorReply
from podium.train.ranks import Ranks
from podium.train.runtime import computes_on_several_cores
from podium.train.schedule import ScheduledGroup

T = TypeVar("T")
RolloutKey: TypeAlias = tuple[str, int]
"""The name of a rollout: that of its group, and its number in it."""


@dataclass(frozen=True, slots=True, eq=False)
class RolloutSample:
    """One completion of a batch, with its score and reward. Before it is sampled, it has only its group and number."""

    group: ScheduledGroup
    rollout: int
    """The number of the rollout in its group. All rounds of a rollout have the same number."""
    plans: tuple[str, ...] = ()
    """The policy's texts in the rounds before."""
    prompt: tuple[int, ...] = ()
    """Token ids of the prompt. It is empty if the rollout does not reach this round."""
    too_long: bool = False
    """Whether the prompt would have left no room for a plan, so that no plan was asked for."""
    tokens: tuple[int, ...] = ()
    """The completion's token ids, including the token that ended it."""
    logprobs: tuple[float, ...] | None = None
    """The log-probability of each token. None if the engine does not say."""
    truncated: bool = False
    """Whether the completion reached the limit of tokens before it ended by itself."""
    score: Score | None = None
    reward: float | None = None
    """The reward that the engine learns from. A sample whose reward is None is left out of its group."""

    @property
    def key(self) -> RolloutKey:
        """The name of the rollout, which all of its rounds share."""
        return self.group.name, self.rollout

    def request(self, plans: tuple[str, ...]) -> RolloutRequest:
        """The request to the scoring session for this rollout."""
        return RolloutRequest(
            task=self.group.task,
            group=self.group.name,
            rollout=self.rollout,
            plans=plans,
            truncated=self.truncated,
        )


OnEnd = Callable[[RolloutSample, Sequence[int], Sequence[float] | None], None]
"""A function that takes a sample with its prompt, and the tokens and log-probabilities of its completion."""


@dataclass(frozen=True, slots=True)
class RoundSampling:
    """How the completions of one round are sampled. It is the same on all ranks."""

    round: int
    """The number of the round, from 0."""
    max_samples: int
    """The most samples of the round on any rank."""
    greedy: bool = False
    """Whether the most likely tokens are taken."""


class Sampler(Protocol):
    """The part of an engine that samples completions from the present policy."""

    @property
    def eos_token_ids(self) -> Collection[int]:
        """The tokens that end a completion."""
        ...

    def draw(self, samples: Sequence[RolloutSample], on_end: OnEnd, sampling: RoundSampling) -> None:
        """Draw a completion for each sample that has a prompt, and call `on_end` once for each as soon as it ends.

        All ranks call this together.

        Args:
            samples: the samples of one round on this rank. In a first round, samples with the same prompt are
                neighbours.
        """
        ...


class TrainingInterruptedError(Exception):
    """The run was told to stop while plans were written or run."""


@dataclass(frozen=True, eq=False)
class RolloutCollector:
    """Has samples prompted, completed, scored and rewarded."""

    scoring: ScoringBackend
    loop: asyncio.AbstractEventLoop
    """The event loop of the scoring session."""
    codec: PromptCodec
    rounds: int
    """The most plans of one rollout."""
    discount: float | Literal["none"]
    """The share of a plan's reward that comes from the round after it, as `discounted_rewards` computes it."""
    max_prompt_tokens: int
    """The most tokens of a prompt. A longer prompt gets no plan."""
    ranks: Ranks
    stop: threading.Event
    """An event that is set when the run is to end."""
    workers_here: bool = False
    """Whether models among the workers compute on this machine. Plans run only after all are written, then, if the
    policy needs several cores too."""
    on_plan: Callable[[int], None] = lambda tokens: None
    """Called with the tokens of each plan when it is written."""
    gate: Callable[[Sequence[RolloutSample]], None] | None = None
    """Called with the samples of all ranks in the first batch. It refuses a start that cannot learn."""

    def run(
        self,
        samples: Sequence[RolloutSample],
        sampler: Sampler,
        *,
        max_samples: int,
        greedy: bool = False,
    ) -> tuple[list[RolloutSample], dict[str, float]]:
        """Take this rank's samples through all rounds. All ranks call it together.

        Args:
            samples: the group and the number of each sample.
            max_samples: the most samples of a round on any rank. It is the same on all ranks.

        Returns:
            The completed samples in the same order, and two times in seconds: "sample" until the last token was drawn,
            and "score" from then until the last score.

        Raises:
            PodiumError: one rank could not get a prompt or a score. Every rank raises the error, such as a
                BudgetExceededError.
            UsageError: the start does not pass the gate.
            TrainingInterruptedError: the run got a signal to stop.
        """
        seconds = {"sample": 0.0, "score": 0.0}
        for number in range(self.rounds):
            samples = self._run_round(samples, sampler, RoundSampling(number, max_samples, greedy), seconds)
        rewarded = with_rewards(samples, self.discount)
        if self.gate is not None and not greedy and any(sample.group.iteration == 0 for sample in rewarded):
            self.gate(self.ranks.gather(rewarded))
        return rewarded, seconds

    def _run_round(
        self,
        samples: Sequence[RolloutSample],
        sampler: Sampler,
        sampling: RoundSampling,
        seconds: dict[str, float],
    ) -> Sequence[RolloutSample]:
        """Take the samples through one round, and add to the seconds until and after the last token. Returns all
        samples."""
        earlier = {sample.key: sample for sample in samples if sample.group.round == sampling.round - 1}
        current = {sample.key: sample for sample in samples if sample.group.round == sampling.round}
        pending: list[tuple[RolloutSample, Future[Score]]] = []
        running: list[asyncio.Task[Any]] = []
        held: list[RolloutSample] = []
        holds = self.workers_here and computes_on_several_cores()

        def submit(work: Callable[[], Awaitable[T]]) -> Future[T]:
            async def run() -> T:
                task = asyncio.current_task()
                assert task is not None, "a coroutine runs in a task"
                running.append(task)
                return await work()

            return asyncio.run_coroutine_threadsafe(run(), self.loop)

        def run_plan(sample: RolloutSample) -> None:
            request = sample.request((*sample.plans, self.codec.decode(sample.tokens)))
            pending.append((sample, submit(partial(self.scoring.score, request))))

        def on_end(sample: RolloutSample, tokens: Sequence[int], logprobs: Sequence[float] | None) -> None:
            if self.stop.is_set():
                raise TrainingInterruptedError
            self.on_plan(len(tokens))
            sample = replace(
                sample,
                tokens=tuple(tokens),
                logprobs=None if logprobs is None else tuple(logprobs),
                truncated=not tokens or tokens[-1] not in sampler.eos_token_ids,
            )
            (held.append if holds else run_plan)(sample)

        error = None
        try:
            prompting = partial(self._with_prompts, list(current.values()), earlier)
            current |= self._wait_for(submit(prompting))
            started = time.perf_counter()
            sampler.draw(list(current.values()), on_end, sampling)
            written = time.perf_counter()
            for sample in held:
                run_plan(sample)
            scored, error = self._take_scores(pending)
            current |= scored
            seconds["sample"] += written - started
            seconds["score"] += time.perf_counter() - written
        except PodiumError as failure:
            error = failure
        finally:
            for _, score in pending:
                score.cancel()
            asyncio.run_coroutine_threadsafe(_wait_until_ended(running), self.loop).result()
        self._raise_everywhere(error)
        return [current[sample.key] if sample.group.round == sampling.round else sample for sample in samples]

    async def _with_prompts(
        self, current: Sequence[RolloutSample], earlier: Mapping[RolloutKey, RolloutSample]
    ) -> dict[RolloutKey, RolloutSample]:
        """The samples whose rollouts reach this round, with their encoded prompts."""

        async def add(group: Sequence[RolloutSample]) -> list[RolloutSample]:
            messages = await self.scoring.prompt(group[0].request(group[0].plans))
            tokens = () if messages is None else tuple(self.codec.encode(messages))
            too_long = len(tokens) > self.max_prompt_tokens
            prompt = () if too_long else tokens
            return [replace(sample, prompt=prompt, too_long=too_long) for sample in group]

        groups: dict[Any, list[RolloutSample]] = {}
        for sample in current:
            if not sample.group.round:
                groups.setdefault(sample.group, []).append(sample)  # The whole group has one prompt.
            elif (before := earlier[sample.key]).score is not None and not before.score.finished:
                plans = (*before.plans, self.codec.decode(before.tokens))
                groups[sample.key] = [replace(sample, plans=plans)]
        prompted = await asyncio.gather(*map(add, groups.values()))
        return {sample.key: sample for group in prompted for sample in group}

    def _take_scores(
        self, pending: Sequence[tuple[RolloutSample, Future[Score]]]
    ) -> tuple[dict[RolloutKey, RolloutSample], PodiumError | None]:
        """Wait for every score, so that all paid calls have ended. Returns the scored samples, and the first error."""
        scored, error = {}, None
        for sample, score in pending:
            try:
                scored[sample.key] = replace(sample, score=self._wait_for(score))
            except PodiumError as failure:
                error = error or failure
        return scored, error

    def _wait_for(self, future: Future[T]) -> T:
        while True:
            try:
                return future.result(timeout=1.0)
            except TimeoutError:
                if future.done():  # It is ready by now, or raised a `TimeoutError` of its own.
                    return future.result()
                if self.stop.is_set():
                    future.cancel()
                    raise TrainingInterruptedError from None

    def _raise_everywhere(self, error: PodiumError | None) -> None:
        """Raise the error of one rank on every rank, since other ranks would wait for that rank for ever."""
        refusals: list[ErrorReply | None] = self.ranks.gather(
            [None if error is None else ErrorReply.of(error)]
        )
        if error is not None:
            raise error
        for refusal in refusals:
            if refusal is not None:
                message = f"Another rank stopped: {refusal.message}"
                raise refusal.model_copy(update={"message": message}).error


async def _wait_until_ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Return once all have ended, also those that were cancelled: what they use may be closed then."""
    await asyncio.gather(*tasks, return_exceptions=True)


def with_rewards(samples: Sequence[RolloutSample], discount: float | Literal["none"]) -> list[RolloutSample]:
    """The samples with the rewards of `discounted_rewards`. The reward is None for a round that its rollout never
    reached."""
    rollouts: dict[RolloutKey, list[RolloutSample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.group.round):
        if sample.score is not None:
            rollouts.setdefault(sample.key, []).append(sample)
    rewards: dict[RolloutSample, float | None] = {}
    for rounds in rollouts.values():
        scores = [sample.score for sample in rounds if sample.score is not None]
        earned = discounted_rewards([score.reward for score in scores], scores[-1].rollout_reward, discount)
        rewards.update(zip(rounds, earned, strict=True))
    return [replace(sample, reward=rewards.get(sample)) for sample in samples]
