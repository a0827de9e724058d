"""Writes the completions of a round with TRL's trainer.

With transformers, workers run a plan as soon as its last token is sampled, while other plans are still generated. With
vLLM, they run plans when the whole batch is generated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from transformers import GenerationConfig

from podium.train.rollouts import OnEnd, RolloutSample, RoundSampling, TrainingInterruptedError

_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
"""Generation arguments that are left out of greedy decoding."""


class TRLSampler:
    """Samples completions with TRL's trainer.

    Args:
        trainer: TRL's GRPOTrainer.
        stop: set when the run is to end.
    """

    def __init__(self, trainer: Any, stop: threading.Event) -> None:
        self._trainer = trainer
        self._stop = stop

    @property
    def eos_token_ids(self) -> Collection[int]:
        """The tokens that end a completion, from TRL's generation settings."""
        return self._trainer.eos_token_ids  # type: ignore[no-any-return]

    def draw(self, samples: Sequence[RolloutSample], on_end: OnEnd, sampling: RoundSampling) -> None:
        """Have TRL generate the completions of the round, and call `on_end` for each completion that ends."""
        trainer = self._trainer
        rows = self._rows(samples, sampling.max_samples)
        if not rows:
            return
        no_prompt = [trainer.processing_class.eos_token_id]
        prompts = [no_prompt if sample is None else list(sample.prompt) for sample in rows]
        ended: set[int] = set()

        def end(row: int, tokens: list[int]) -> None:
            ended.add(row)
            if (sample := rows[row]) is not None:
                on_end(sample, tokens, None)  # transformers gives no log-probabilities.

        num_generations = 1 if sampling.greedy or sampling.round else trainer.num_generations
        with self._greedy() if sampling.greedy else nullcontext(), self._watch(len(rows), end):
            # TRL gives a rollout function no public method that generates as its trainer does: from token ids, with
            # vLLM or with parts of the model on other ranks, and with weights that were just updated.
            completions, logprobs = trainer._generate_single_turn(prompts, None, {}, num_generations)
        for row, sample in enumerate(rows):
            if sample is not None and row not in ended:
                on_end(sample, completions[row], None if logprobs is None else logprobs[row])

    def _rows(self, samples: Sequence[RolloutSample], max_samples: int) -> list[RolloutSample | None]:
        """The samples that this rank generates at once. None stands for a row whose completion is not used.

        Ranks that hold parts of one model must generate together, even if a rank has no prompt.
        """
        prompted = [sample for sample in samples if sample.prompt]
        if self._trainer.accelerator.num_processes == 1:
            return [*prompted]
        if not self._counts_rows:
            return [*prompted] or [None]
        unused = [None] * (max_samples - len(samples))
        return [*(sample if sample.prompt else None for sample in samples), *unused]

    @contextmanager
    def _watch(self, rows: int, end: Callable[[int, list[int]], None]) -> Iterator[None]:
        """While transformers generates, call `end` for each row as soon as the model has read the row's last token."""
        trainer = self._trainer
        if trainer.use_vllm:
            yield
            return
        eos_token_ids = set(trainer.eos_token_ids)
        written: list[list[int]] = [[] for _ in range(rows)]
        begun = False

        def see(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            nonlocal begun
            if self._stop.is_set():
                raise TrainingInterruptedError
            ids = kwargs.get("input_ids", args[0] if args else None)
            if not begun or ids is None or ids.shape[1] != 1:
                begun = True  # The first call reads the prompts.
                return
            for row, token in enumerate(ids[:rows, 0].tolist()):
                tokens = written[row]
                if not tokens or tokens[-1] not in eos_token_ids:
                    tokens.append(token)
                    if token in eos_token_ids:
                        end(row, tokens)

        model = trainer.accelerator.unwrap_model(trainer.model)
        model = model.get_base_model() if hasattr(model, "get_base_model") else model
        hook = model.register_forward_pre_hook(see, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()

    @contextmanager
    def _greedy(self) -> Iterator[None]:
        """Make the trainer decode greedily (temperature 0) inside this context."""
        trainer = self._trainer
        if trainer.use_vllm:
            engine = trainer.vllm_generation
            temperature, engine.temperature = engine.temperature, 0.0
            try:
                yield
            finally:
                engine.temperature = temperature
            return
        before = trainer.generation_config, trainer.generation_kwargs
        plain = {key: value for key, value in trainer.generation_kwargs.items() if key not in _SAMPLING}
        plain["do_sample"] = False
        trainer.generation_config = GenerationConfig(**plain, disable_compile=True)  # type: ignore[no-untyped-call]
        trainer.generation_kwargs = plain
        try:
            yield
        finally:
            trainer.generation_config, trainer.generation_kwargs = before

    @property
    def _counts_rows(self) -> bool:
        """Whether TRL generates for several ranks at once, and finds a rank's completions by counting.

        Then TRL assumes that all ranks have the same number of prompts, and that each group of equal prompts is
        complete.
        """
        engine = self._trainer.vllm_generation if self._trainer.use_vllm else None
        return engine is not None and (engine.mode == "server" or engine.tensor_parallel_size > 1)
