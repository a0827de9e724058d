"""Evaluates the policy while it is trained: one greedy rollout of each validation question.

The code and the budget are those of training rollouts. The ranks divide the questions among themselves. Every
evaluation of a run uses the same pools, and the same seeds for the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate.utils import gather_object
from transformers import GenerationConfig

from podium.train.lm.metrics import batch_figures
from podium.train.lm.rollouts import RolloutFunction, SampledCompletion
from podium.train.lm.schedule import Row

_KEPT = ("accuracy", "valid", "steps", "calls", "cost_usd", "dropped")
"""The figures of `batch_figures` that an evaluation reports."""
_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
"""Generation arguments that are left out of greedy decoding."""


class Evaluation:
    """The evaluations of one run, on this rank.

    Args:
        tasks: ids of the questions, for the scoring session.
        rollouts: makes the rollouts.
    """

    def __init__(self, tasks: Sequence[str], rollouts: RolloutFunction, *, rounds: int, seed: int) -> None:
        self._rollouts = rollouts
        self._questions = [
            [Row(0, number, round_, task, f"evaluation/{seed}/{number}") for round_ in range(rounds)]
            for number, task in enumerate(tasks)
        ]
        self._rounds = rounds

    def __call__(self, trainer: Any) -> dict[str, Any]:
        """Evaluate the trainer's current policy. All ranks must call this together.

        "accuracy", "calls" and "cost_usd" (dollars) are means over the questions whose workers did not fail. "valid"
        and "steps" are means over plans. For "dropped" see `batch_figures`.

        Raises:
            PodiumError: as `RolloutFunction`.
        """
        began = time.perf_counter()
        ranks, rank = trainer.accelerator.num_processes, trainer.accelerator.process_index
        own = self._questions[rank::ranks]
        at_once = max(1, trainer.args.generation_batch_size // ranks // self._rounds)
        samples: list[SampledCompletion] = []
        with _greedy(trainer):
            # Each rank loops equally often, because ranks that hold parts of one model must generate together.
            for first in range(0, len(self._questions[::ranks]), at_once):
                part = [SampledCompletion(row, 0) for rows in own[first : first + at_once] for row in rows]
                self._rollouts.run_rounds(part, trainer, num_generations=1, max_samples=at_once)
                samples += part
        figures = batch_figures(gather_object(samples))
        return {
            "questions": len(self._questions),
            **{key: figures[key] for key in _KEPT},
            "seconds": time.perf_counter() - began,
        }


@contextmanager
def _greedy(trainer: Any) -> Iterator[None]:
    """Make the trainer decode greedily (temperature 0) inside this context."""
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
