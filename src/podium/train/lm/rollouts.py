"""Makes the rollouts of a batch, as TRL's `rollout_func`: prompts, completions and rewards.

TRL generates and updates. This file gets the prompts from the scoring session, has the trainer generate the plans, and
sends each plan to the session. With transformers it sends a plan as soon as its last token is sampled, so that workers
answer while other plans are still generated; with vLLM, when the whole batch is generated.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from accelerate.utils import gather_object

from podium.errors import PodiumError
from podium.scoring import RolloutRequest, Score, Scoring
from podium.scoring.protocol import ErrorReply
from podium.train.lm.schedule import Row
from podium.types import Message

T = TypeVar("T")


class PromptCodec(Protocol):
    """Messages to tokens and back: `podium.conductor.codec` for plain text, `chat_codec` for a chat template."""

    def encode(self, messages: Sequence[Message]) -> list[int]: ...

    def encode_completion(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


@dataclass(slots=True, eq=False)
class SampledCompletion:
    """One completion of a batch, and what became of it."""

    row: Row
    rollout: int
    """The number of the rollout in its group; its rounds share it."""
    plans: tuple[str, ...] = ()
    """What the policy wrote in the rounds before."""
    prompt: list[int] = field(default_factory=list)
    """Token ids. Empty: the rollout does not reach this round."""
    too_long: bool = False
    """Whether its prompt would have left no room for a plan, so that none was asked for."""
    tokens: list[int] = field(default_factory=list)
    """The completion's token ids, with the one that ended it."""
    logprobs: list[float] | None = None
    ended: bool = False
    """Whether it ended by itself, and was not cut off."""
    score: Score | None = None
    reward: float | None = None
    """What the trainer learns from; None: it is left out of its group."""


class TrainingInterruptedError(Exception):
    """The run got a signal to stop while it generated."""


class RolloutFunction:
    """Makes the rollouts of a batch. Called by TRL's trainer in its own thread, on each rank for its part.

    Args:
        rows: of the dataset, by label.
        loop: where the scoring session lives.
        rounds: of a rollout.
        discount: share of a plan's reward that the round after it gives.
        context: tokens that prompt and completion may have together.
        stop: set when the run is to end.
        on_plan: called with the tokens of each plan of a batch when it is written.
    """

    def __init__(
        self,
        rows: Mapping[str, Row],
        scoring: Scoring,
        loop: asyncio.AbstractEventLoop,
        codec: PromptCodec,
        *,
        rounds: int,
        discount: float,
        context: int,
        stop: threading.Event,
        on_plan: Callable[[int], None] = lambda tokens: None,
    ) -> None:
        self._on_plan = on_plan
        self._rows = rows
        self._scoring = scoring
        self._loop = loop
        self._codec = codec
        self._rounds = rounds
        self._discount = discount
        self._context = context
        self._stop = stop
        self.samples: list[SampledCompletion] = []
        """Of the latest batch, of all ranks."""
        self.seconds: dict[str, float] = {}
        """Of the latest batch: "sample" is the time until the last token, "score" the time after it."""

    def __call__(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """The batch of the rows that `prompts` name, each as often as it has samples.

        Raises:
            PodiumError: one rank could not get a prompt or a score, such as a BudgetError; every rank raises it.
            TrainingInterruptedError: the run got a signal to stop.
        """
        first = trainer.accelerator.process_index * len(prompts)
        # Ranks hold parts of the batch in order, and samples of one row stand together.
        samples = [
            SampledCompletion(self._rows[label], (first + place) % trainer.num_generations)
            for place, label in enumerate(prompts)
        ]
        self.seconds = self.run_rounds(
            samples,
            trainer,
            num_generations=trainer.num_generations,
            max_samples=len(prompts) // self._rounds,
        )
        set_rewards(samples, self._discount)
        self.samples = gather_object(samples)
        # A round that a rollout does not reach has one token that nothing is learned from.
        nothing = trainer.processing_class.eos_token_id
        return {
            "prompt_ids": [sample.prompt or [nothing] for sample in samples],
            "completion_ids": [sample.tokens or [nothing] for sample in samples],
            "logprobs": _all_or_none([sample.logprobs for sample in samples]),
            "env_mask": [[int(bool(sample.tokens))] * max(1, len(sample.tokens)) for sample in samples],
            "podium_reward": [sample.reward for sample in samples],
        }

    def run_rounds(
        self, samples: Sequence[SampledCompletion], trainer: Any, *, num_generations: int, max_samples: int
    ) -> dict[str, float]:
        """Add prompts, completions and scores to this rank's samples, round by round. All ranks call it together.

        Args:
            num_generations: samples of a first round that stand together and have one prompt.
            max_samples: samples of a round on a rank at most; the same on all ranks.

        Returns:
            Seconds: "sample" until the last token, "score" after it.

        Raises:
            PodiumError, TrainingInterruptedError: as `__call__`.
        """
        seconds = {"sample": 0.0, "score": 0.0}
        for number in range(self._rounds):
            self._run_round(
                number,
                samples,
                trainer,
                seconds,
                num_generations=1 if number else num_generations,
                max_samples=max_samples,
            )
        return seconds

    def _run_round(
        self,
        number: int,
        samples: Sequence[SampledCompletion],
        trainer: Any,
        seconds: dict[str, float],
        *,
        num_generations: int,
        max_samples: int,
    ) -> None:
        earlier = {_key(sample): sample for sample in samples if sample.row.round == number - 1}
        current = [sample for sample in samples if sample.row.round == number]
        pending: list[tuple[SampledCompletion, Future[Score]]] = []
        error = None
        try:
            self._await(self._add_prompts(current, earlier))
            started = time.perf_counter()
            self._generate(current, trainer, num_generations, max_samples, pending)
            written = time.perf_counter()
            error = self._take_scores(pending)
            seconds["sample"] += written - started
            seconds["score"] += time.perf_counter() - written
        except PodiumError as failure:
            error = failure
        finally:
            for _, score in pending:
                score.cancel()
        _raise_everywhere(error)

    def _take_scores(self, pending: Sequence[tuple[SampledCompletion, Future[Score]]]) -> PodiumError | None:
        """Wait for every score; returns the first error. The calls of the other rollouts are paid for by then."""
        error = None
        for sample, score in pending:
            try:
                sample.score = self._wait_for(score)
            except PodiumError as failure:
                error = error or failure
        return error

    async def _add_prompts(
        self, current: Sequence[SampledCompletion], earlier: Mapping[Any, SampledCompletion]
    ) -> None:
        """Encode the prompt of each sample whose rollout reaches this round."""

        async def add(group: Sequence[SampledCompletion]) -> None:
            messages = await self._scoring.prompt(_request(group[0], group[0].plans))
            tokens = [] if messages is None else self._codec.encode(messages)
            for sample in group:
                sample.prompt = tokens

        groups: dict[Any, list[SampledCompletion]] = {}
        for sample in current:
            if not sample.row.round:
                groups.setdefault(sample.row, []).append(sample)  # One prompt for the whole group.
            elif (before := earlier[_key(sample)]).score is not None and not before.score.finished:
                sample.plans = (*before.plans, self._codec.decode(before.tokens))
                groups[_key(sample)] = [sample]
        await asyncio.gather(*map(add, groups.values()))

    def _generate(
        self,
        current: Sequence[SampledCompletion],
        trainer: Any,
        num_generations: int,
        max_samples: int,
        pending: list[tuple[SampledCompletion, Future[Score]]],
    ) -> None:
        """Have the trainer write the completions. When one ends, start to score it and add it to `pending`."""
        limit = self._context - trainer.max_completion_length
        reached = [sample for sample in current if sample.prompt and len(sample.prompt) <= limit]
        for sample in current:
            if sample.prompt and sample not in reached:
                sample.prompt, sample.too_long = [], True

        def hand_on(sample: SampledCompletion, tokens: list[int]) -> None:
            sample.tokens = tokens
            self._on_plan(len(tokens))
            sample.ended = bool(tokens) and tokens[-1] in trainer.eos_token_ids
            plans = (*sample.plans, self._codec.decode(tokens))
            request = _request(sample, plans, cut=not sample.ended)
            pending.append(
                (sample, asyncio.run_coroutine_threadsafe(self._scoring.score(request), self._loop))
            )

        alone = trainer.accelerator.num_processes == 1
        if not reached and alone:
            return
        # Ranks that hold parts of one model generate together, also where a rank has no prompt of its own.
        asked: list[SampledCompletion | None] = [*reached] or [None]
        if not alone and _counts_places(trainer):
            asked = [sample if sample.prompt else None for sample in current]
            asked += [None] * (max_samples - len(current))
        nothing = [trainer.processing_class.eos_token_id]
        prompts = [nothing if sample is None else sample.prompt for sample in asked]
        handed: set[int] = set()

        def on_end(position: int, tokens: list[int]) -> None:
            handed.add(position)
            if (owner := asked[position]) is not None:
                hand_on(owner, tokens)

        with self._watch(trainer, len(asked), on_end):
            completions, logprobs = trainer._generate_single_turn(prompts, None, {}, num_generations)
        for position, owner in enumerate(asked):
            if owner is None:
                continue
            tokens = list(completions[position])
            owner.logprobs = None if logprobs is None else list(logprobs[position])
            if position not in handed:
                hand_on(owner, tokens)

    @contextmanager
    def _watch(self, trainer: Any, rows: int, on_end: Callable[[int, list[int]], None]) -> Iterator[None]:
        """While transformers generates: call `on_end` for each row, as soon as its last token is read by the model."""
        if trainer.use_vllm:
            yield
            return
        ends = set(trainer.eos_token_ids)
        written: list[list[int]] = [[] for _ in range(rows)]
        begun = False

        def see(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            nonlocal begun
            if self._stop.is_set():
                raise TrainingInterruptedError
            ids = kwargs.get("input_ids", args[0] if args else None)
            if not begun or ids is None or ids.shape[1] != 1:
                begun = True  # The prompts.
                return
            for position, token in enumerate(ids[:rows, 0].tolist()):
                tokens = written[position]
                if not tokens or tokens[-1] not in ends:
                    tokens.append(token)
                    if token in ends:
                        on_end(position, tokens)

        model = trainer.accelerator.unwrap_model(trainer.model)
        model = model.get_base_model() if hasattr(model, "get_base_model") else model
        hook = model.register_forward_pre_hook(see, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()

    def _await(self, coroutine: Any) -> Any:
        return self._wait_for(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def _wait_for(self, future: Future[T]) -> T:
        while True:
            try:
                return future.result(timeout=1.0)
            except TimeoutError:
                if self._stop.is_set() and not future.done():
                    future.cancel()
                    raise TrainingInterruptedError from None


def set_rewards(samples: Sequence[SampledCompletion], discount: float) -> None:
    """Set each sample's reward: (1 - d) times its own score and d times the reward of the round after it.

    The last round of a rollout has its score alone. So has one whose later round could not be scored: that workers
    failed there says nothing of the earlier plan. (The paper, section 3.2; its code.)
    """
    by_rollout = {(*_key(sample), sample.row.round): sample for sample in samples}
    for sample in sorted(samples, key=lambda sample: -sample.row.round):
        sample.reward = None if sample.score is None else sample.score.reward
        later = by_rollout.get((*_key(sample), sample.row.round + 1))
        if sample.reward is not None and later is not None and later.reward is not None:
            sample.reward = (1 - discount) * sample.reward + discount * later.reward


def _counts_places(trainer: Any) -> bool:
    """Whether TRL generates for several ranks at once, and finds a rank's completions by counting.

    It takes every rank to have given as many prompts, and every group of equal prompts to be whole.
    """
    engine = trainer.vllm_generation if trainer.use_vllm else None
    return engine is not None and (engine.mode == "server" or engine.tensor_parallel_size > 1)


def _key(sample: SampledCompletion) -> tuple[str, int]:
    """Names a rollout, over its rounds."""
    return sample.row.seed, sample.rollout


def _request(sample: SampledCompletion, plans: tuple[str, ...], *, cut: bool = False) -> RolloutRequest:
    row = sample.row
    return RolloutRequest(task=row.task, seed=row.seed, rollout=sample.rollout, plans=plans, cut=cut)


def _all_or_none(logprobs: Sequence[list[float] | None]) -> list[list[float]] | None:
    """vLLM gives log-probabilities, transformers none."""
    if all(row is None for row in logprobs):
        return None
    return [row or [0.0] for row in logprobs]


def _raise_everywhere(error: PodiumError | None) -> None:
    """Raise on every rank the error of one of them: ranks that went on would wait for that one for ever."""
    refusals: list[ErrorReply | None] = gather_object([None if error is None else ErrorReply.of(error)])
    if error is not None:
        raise error
    for refusal in refusals:
        if refusal is not None:
            message = f"Another rank stopped: {refusal.message}"
            raise refusal.model_copy(update={"message": message}).error
