"""A callback of TRL's trainer: writes each iteration's row, shows it, and stops a run that learns nothing.

It has the policy evaluated where that is due. What a row holds is computed elsewhere (`metrics`, `evaluation`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from podium.rollout.run_folder import RunFolder
from podium.train.collapse import alarms
from podium.train.display import Display
from podium.train.lm.progress import Progress
from podium.train.lm.rollouts import RolloutFunction
from podium.train.lm.settings import LMExperiment


class Recorder(TrainerCallback):
    """Writes our row of each iteration, shows it, and stops a run that learns nothing."""

    def __init__(
        self,
        experiment: LMExperiment,
        rollouts: RolloutFunction,
        *,
        run: RunFolder | None,
        display: Display,
        progress: Progress,
        on_warning: Callable[[str], None],
        evaluate: Callable[[], dict[str, Any]] | None,
        stop: threading.Event,
    ) -> None:
        self._experiment = experiment
        self._rollouts = rollouts
        self._rows = None if run is None else run.rows()
        self._display = display
        self._progress = progress
        self._on_warning = on_warning
        self._evaluate = evaluate
        self._stop = stop
        self._began = time.perf_counter()
        self._still = 0
        self._elapsed_s = 0.0
        self.figures: dict[str, Any] = {}
        """Of the latest batch."""
        self._evaluation: dict[str, Any] | None = None
        """Of the policy after the latest iteration, if that was due."""

    def begin(self, steps: int) -> None:
        """Keep the rows of the steps that the checkpoint holds."""
        if self._rows is not None:
            self._rows.truncate(steps // self._experiment.grpo.num_iterations)
            rows = self._rows.read()
            self._elapsed_s = sum(sum(row["seconds"].values()) for row in rows)
            self._display.begin(rows, elapsed_s=self._elapsed_s)
        self._progress.begin(self._plans_until(steps // self._experiment.grpo.num_iterations))

    def _plans_until(self, iteration: int) -> int:
        """Plans of the iterations before, with those of evaluations."""
        return self._experiment.plans * iteration // max(1, self._experiment.grpo.iterations)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # The first pass over a batch also generates it.
        if state.global_step % self._experiment.grpo.num_iterations == 0:
            self._began = time.perf_counter()
            number = state.global_step // self._experiment.grpo.num_iterations
            iterations = self._experiment.grpo.iterations
            self._progress.phase(f"iteration {number + 1}/{iterations}", self._plans_until(number))

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = control.should_training_stop or self._stop.is_set()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.on_substep_end(args, state, control)  # A step of one micro-batch has no substeps.
        grpo = self._experiment.grpo
        self._evaluation = None
        if self._evaluate is not None and state.global_step % (grpo.num_iterations * grpo.eval_every) == 0:
            self._evaluation = self._evaluate()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs: dict[str, Any] = kwargs["logs"]
        passes = self._experiment.grpo.num_iterations
        if "loss" not in logs or state.global_step % passes:
            return
        seconds = dict(self._rollouts.seconds)
        if self._evaluation is not None:
            seconds["evaluate"] = self._evaluation.pop("seconds")
        took = time.perf_counter() - self._began
        self._progress.learned(float(logs["loss"]))
        row = {
            "iteration": state.global_step // passes - 1,
            **self.figures,
            "entropy": logs.get("entropy", 0.0),
            "kl": logs.get("kl", 0.0),
            "loss": logs["loss"],
            "grad_norm": logs.get("grad_norm", 0.0),
            "lr": logs["learning_rate"],
            "seconds": {
                phase: round(value, 3)
                for phase, value in {**seconds, "update": max(0.0, took - sum(seconds.values()))}.items()
            },
        }
        if self._evaluation is not None:
            row["evaluation"] = self._evaluation
        row["alarms"] = alarms(row)
        nothing_learned = 1.0 in (row["zero_variance_groups"], row["unrewarded_groups"])
        self._still = self._still + 1 if nothing_learned else 0
        if self._still >= self._experiment.grpo.patience:
            control.should_training_stop = True
            self._on_warning(
                f"Stopped after {self._still} iterations in a row in which the rewards of each group were equal, or "
                "there were none: nothing is learned from them. Take easier or harder tasks, a larger grpo.group, or "
                "begin with --stage sft."
            )
        if self._rows is not None:
            self._elapsed_s += took
            self._rows.append(row)
            self._display.show(row, elapsed_s=self._elapsed_s)
            if row["alarms"] and not (row["iteration"] % 10):
                self._on_warning(f"Iteration {row['iteration'] + 1}: {' '.join(row['alarms'])}")
