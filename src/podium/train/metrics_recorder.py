"""Writes and reports the rows of a run, for either engine and stage, and decides when a run has to end early.

`metrics` computes the figures of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from podium.errors import DivergedError
from podium.rollout.collapse import collapse_warnings, first_and_last_means
from podium.rollout.run_folder import RunFolder
from podium.train.metrics import batch_figures
from podium.train.progress import Progress, format_duration
from podium.train.rollouts import RolloutSample
from podium.train.settings import TrainSettings


class IterationRecorder:
    """The rows of one run of GRPO, one for each iteration.

    Args:
        run: the run's folder. None on a rank that writes nothing.
        on_metrics: called with each row as soon as it is written.
    """

    def __init__(
        self,
        settings: TrainSettings,
        *,
        run: RunFolder | None,
        progress: Progress,
        on_metrics: Callable[[Mapping[str, Any]], None] = lambda row: None,
    ) -> None:
        self._settings = settings
        self._run = run
        self._rows = None if run is None else run.rows()
        self.progress = progress
        self._on_metrics = on_metrics
        self._earlier: list[dict[str, Any]] = []
        """All rows of the run so far, including those that were written before it was resumed."""
        self._idle_iterations = 0
        self._elapsed_s = 0.0
        self._done = 0

    def resume(self, iterations: int) -> None:
        """Continue after the `iterations` of the newest checkpoint. Rows of later iterations are removed."""
        self._done = iterations
        if self._run is not None and self._rows is not None:
            self._rows.truncate(iterations)
            self._earlier = self._rows.read()
            self._elapsed_s = sum(sum(row["seconds"].values()) for row in self._earlier)
            self._idle_iterations = sum(1 for _ in takewhile(_is_idle, reversed(self._earlier)))
            resumed = f", {iterations} of them done" if iterations else ""
            self.progress.say(
                f"Training {self._run.path}: {self._settings.grpo.iterations} iterations{resumed}"
            )
        minutes = self._settings.grpo.minutes
        self.progress.begin(
            self._plans_until(iterations), None if minutes is None else minutes * 60 - self._elapsed_s
        )

    def start_iteration(self, iteration: int) -> None:
        """Show in the progress lines that this iteration begins."""
        self.progress.phase(
            f"iteration {iteration + 1}/{self._settings.grpo.iterations}", self._plans_until(iteration)
        )

    @property
    def is_evaluation_due(self) -> bool:
        """Whether the policy is evaluated after the present iteration."""
        every = self._settings.grpo.eval_every
        return bool(every) and (self._done + 1) % every == 0

    @property
    def is_over(self) -> bool:
        """Whether the run ends before its last iteration, since its time is over or nothing is learned any more."""
        return self.is_out_of_time or self._idle_iterations >= self._settings.grpo.patience

    @property
    def is_out_of_time(self) -> bool:
        """Whether another iteration of the usual length would exceed `grpo.minutes`."""
        minutes = self._settings.grpo.minutes
        if minutes is None or not self._done or self._rows is None:
            return False
        return self._elapsed_s * (self._done + 1) / self._done > minutes * 60

    def record(
        self,
        samples: Sequence[RolloutSample],
        *,
        loss: float,
        seconds: Mapping[str, float],
        evaluation: dict[str, Any] | None,
        **learned: float,
    ) -> bool:
        """Write and report the row of the iteration that ends. All ranks call this.

        Args:
            samples: the samples of all ranks.
            seconds: the time of each phase. The time of the evaluation is added to it.
            learned: further figures of the update: "entropy" (nats per token), "kl" (nats, from the start), "grad_norm"
                (before clipping), "lr".

        Returns:
            Whether the run goes on, since something can be learned and there is time.

        Raises:
            DivergedError: see `refuse_divergence`.
        """
        refuse_divergence(f"Iteration {self._done + 1}", {"loss": loss, **learned}, "grpo.lr")
        self.progress.loss = loss
        phases = dict(seconds)
        if evaluation is not None:
            evaluation = dict(evaluation)
            phases["evaluate"] = evaluation.pop("seconds")
        row = {
            "iteration": self._done,
            **batch_figures(samples),
            **learned,
            "loss": loss,
            "seconds": {phase: round(value, 3) for phase, value in phases.items()},
        }
        if evaluation is not None:
            row["evaluation"] = evaluation
        self._earlier.append(row)
        start, now = first_and_last_means(self._earlier)
        row["alarms"] = collapse_warnings(now, start)
        self._done += 1
        self._elapsed_s += sum(phases.values())
        if self._rows is not None:
            self._rows.append(row)
            self._on_metrics(row)
            self.progress.say(self._line(row))
            if row["alarms"] and not (row["iteration"] % 10):
                self.progress.say(f"Iteration {self._done}: {' '.join(row['alarms'])}")
        return self._can_learn(row) and not self.is_out_of_time

    def _line(self, row: Mapping[str, Any]) -> str:
        """The figures of the newest row, and the time until the last iteration or `grpo.minutes`."""
        iterations, minutes = self._settings.grpo.iterations, self._settings.grpo.minutes
        remaining_s = self._elapsed_s / self._done * (iterations - self._done)
        if minutes is not None:
            remaining_s = max(0.0, min(remaining_s, minutes * 60 - self._elapsed_s))
        return (
            f"iteration {self._done:4d}/{iterations}  reward {row['reward']:.3f}  valid {row['valid']:6.1%}  accuracy "
            f"{row['accuracy']:6.1%}  steps {row['steps']:.2f}  cost ${row['cost_usd']:.5f}  "
            f"{format_duration(remaining_s)} left"
        )

    def _can_learn(self, row: Mapping[str, Any]) -> bool:
        self._idle_iterations = self._idle_iterations + 1 if _is_idle(row) else 0
        if self._idle_iterations < self._settings.grpo.patience:
            return True
        way_out = "Take easier or harder tasks, a larger grpo.group, or begin with --stage sft."
        if row["failed"] == 1.0:
            way_out = "Workers or the grader fail: run podium pool check, or find the failures in the traces."
        self.progress.say(
            f"Stopped after {self._idle_iterations} iterations in a row in which the rewards of each group were equal, "
            f"or there were none: nothing is learned from them. {way_out}"
        )
        return False

    def _plans_until(self, iteration: int) -> int:
        """How many plans earlier iterations have, including evaluations."""
        return self.progress.total * iteration // max(1, self._settings.grpo.iterations)


def _is_idle(row: Mapping[str, Any]) -> bool:
    """Whether nothing was learned in an iteration, since the rewards of each group were equal, or there were none."""
    return 1.0 in (row["zero_variance_groups"], row["unrewarded_groups"])


class StepRecorder:
    """The rows of one run of the supervised stage, one for each step of the optimiser.

    Args:
        run: the run's folder. None on a rank that writes nothing.
        batch: the examples of a step.
    """

    def __init__(self, run: RunFolder | None, progress: Progress, batch: int) -> None:
        self._rows = None if run is None else run.rows()
        self.progress = progress
        self._batch = batch

    def resume(self, steps: int) -> None:
        """Continue after the `steps` of the newest checkpoint. Rows of later steps are removed."""
        if self._rows is not None:
            self._rows.truncate(steps)
        self.progress.phase("")
        self.progress.begin(min(steps * self._batch, self.progress.total))

    def record(self, step: int, figures: Mapping[str, float]) -> None:
        """Write and report the row of a step, among others its "loss".

        Raises:
            DivergedError: see `refuse_divergence`.
        """
        refuse_divergence(f"Step {step}", figures, "sft.lr")
        self.progress.record_loss(figures["loss"])
        if self._rows is not None:
            self._rows.append({"step": step, **figures})


def refuse_divergence(update: str, figures: Mapping[str, float], lower: str) -> None:
    """Refuse the figures of an update that are not finite, before its row or a checkpoint is written.

    Args:
        update: the iteration or the step, in words.
        lower: the setting to lower.

    Raises:
        DivergedError: a figure is not finite.
    """
    for name, value in figures.items():
        if not math.isfinite(value):
            raise DivergedError(
                f"{update}: {name} is {value}, so the training has diverged, and nothing of this update is kept. "
                f"Lower {lower}, and train in a new folder."
            )


def applied_norm(norm: float, *, scaled: bool) -> float:
    """The norm of the gradient that an update applied.

    It is 0 where the gradient scaler of float16 skipped an update, since its gradient was not finite at this scale.
    """
    return 0.0 if scaled and not math.isfinite(norm) else norm
