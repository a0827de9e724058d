"""`podium train --dry-run`: prints what a run would call, cost and need, and any reasons to refuse the run.

If there are no such reasons, it also tries the workers. The package `train` finds the reasons (`preflight`) and the
figures (`estimate`), and calls the workers (`worker_trial`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from podium.cli.printable import counted, dollars, printable, ranged, say, seconds, shorten
from podium.cli.team_options import CallOptions, open_limited_call_state
from podium.cli.terminal import open_console, plain_table, print_json
from podium.train.engine import OpenedQuestions, TrainingRun
from podium.train.preflight import preflight
from podium.train.run_estimate import GIB, GPUEstimate, WorkerEstimate, estimate_gpu
from podium.train.settings import TrainSettings
from podium.train.worker_trial import WorkerTrial, pair_workers, trial_usd, try_workers
from podium.workers.base import has_paid_workers


async def dry_run(settings: TrainSettings, run: Path | None, *, calls: CallOptions, json: bool) -> int:
    """Print the estimate. If the run would not be refused, try the workers too.

    Only the first rank does so. Returns the exit status: 1 if the run would be refused or a worker did not answer.
    """
    warnings: list[str] = []
    budget_usd = calls.run_budget_usd
    async with preflight(
        settings, run, run_budget_usd=budget_usd, weights=False, on_warning=warnings.append
    ) as checks:
        if not checks.ranks.is_first:
            return 0
        settings, questions = checks.settings, checks.questions
        gpu = estimate_gpu(settings, checks.start, questions.longest_prompt, checks.ranks.size)
        workers_s = 0.0 if questions.workers is None else questions.workers.iteration_s
        if not json:
            for sentence in (_run_sentence(settings, questions), *warnings, ""):
                say(sentence)
            _print_workers(settings, questions.workers, budget_usd)
            _print_gpu(settings, workers_s, gpu)
            if checks.problems:
                say(f"\nThis run would be refused, for {counted(len(checks.problems), 'reason')}:")
            for number, refusal in enumerate(checks.problems, start=1):
                say(f"{number}. {refusal}")
        trials = [] if checks.run is None else await _try_workers(checks.run, calls, json=json)
    if json:
        document = {
            "iterations": settings.grpo.iterations,
            "problems": [str(problem) for problem in checks.problems],
            "tasks": len(questions.tasks),
            "longest_prompt": questions.longest_prompt,
            "workers": questions.workers,
            "gpu": None if gpu is None else _gpu_figures(gpu),
            "hours": None if gpu is None else gpu.run_hours(settings.grpo.iterations, workers_s),
            "warnings": warnings,
            "trials": trials,
        }
        print_json(document)
    return 1 if checks.problems or not all(trial.answered for trial in trials) else 0


async def _try_workers(run: TrainingRun, calls: CallOptions, *, json: bool) -> list[WorkerTrial]:
    """What each worker answers to one question, printed unless the output is JSON."""
    pairs = pair_workers(run.pool, run.questions.tasks.values())
    if not json:
        price = (
            f"about {ranged(dollars, trial_usd(run.pool, pairs))}, and what graders cost"
            if has_paid_workers(run.pool)
            else "nothing"
        )
        say(
            "\nNothing stops this run. Now each worker gets one question, and a grader grades the answer. "
            f"This costs {price}:"
        )
    with open_limited_call_state(calls, run.pool) as call_state:
        trials = await try_workers(run.pool, pairs, call_state)
    if not json:
        _print_trials(trials)
    return trials


def _run_sentence(settings: TrainSettings, questions: OpenedQuestions) -> str:
    grpo = settings.grpo
    longest = (
        f"; the longest prompt has {questions.longest_prompt:,} tokens" if questions.longest_prompt else ""
    )
    return (
        f"{counted(grpo.iterations, 'iteration')} of {counted(grpo.questions, 'question')} x {grpo.group} plans, "
        f"from {settings.start}, over the pool {settings.pool}; "
        f"{counted(len(questions.tasks), 'task')} of {settings.tasks}{longest}."
    )


def _print_workers(settings: TrainSettings, workers: WorkerEstimate | None, budget_usd: float | None) -> None:
    if workers is None:
        say("Workers: not estimated, since the pool or the tasks cannot be opened.")
        return
    tokens = workers.tokens
    unpaid = "" if workers.paid else "; all of them are scripted or recorded, so nothing is paid"
    say(
        f"Workers: about {workers.calls:,.0f} calls, "
        f"{tokens.likely:,.0f} tokens ({tokens.low:,.0f} to {tokens.high:,.0f}), "
        f"{ranged(dollars, workers.cost_usd)}{unpaid}."
    )
    lengths = ", ".join(
        f"{dollars(usd)} for {counted(steps, 'step')}" for steps, usd in workers.cost_by_steps.items()
    )
    say(
        f"  This assumes {workers.plans:,} plans that can all be read, as long and as varied as random plans. "
        f"If all plans had the same length: {lengths}. Cached answers, retries and graders are not counted."
    )
    likely, iterations = workers.cost_usd.likely, settings.grpo.iterations
    if budget_usd is not None and likely > budget_usd:
        say(
            f"  --run-budget-usd of {dollars(budget_usd)} is likely to stop the run after "
            f"{int(iterations * budget_usd / likely):,} of {counted(iterations, 'iteration')}; the same command with "
            "a larger budget continues it."
        )


def _print_gpu(settings: TrainSettings, workers_s: float, gpu: GPUEstimate | None) -> None:
    if gpu is None:
        say("GPU: not estimated, since the model's sizes are not known.")
        return
    kind = f"{gpu.gpu.name} ({gpu.gpu.memory_gib:g} GiB{'' if gpu.seen else ', assumed'})"
    parts = ("weights", "gradients", "moments", "compute_copy", "activations", "logits", "generation")
    held, training = gpu.memory, gpu.training
    memory = ", ".join(f"{part.replace('_', ' ')} {_gib(getattr(held, part))}" for part in parts)
    too_large = " That is more than the GPU has: take more GPUs, a smaller grpo.micro_batch, or [lora]."
    say(
        f"GPU, by formulas (docs/scaling.md): {_number(training.shape.parameters)} parameters, "
        f"{_number(training.trained_parameters)} trained; memory on {gpu.ranks} x {kind}: {_gib(held.peak)} "
        f"({memory}) each; shared by eight: {_gib(replace(gpu, ranks=8).memory.peak)} each."
        + (too_large if held.peak > gpu.gpu.memory_gib * GIB else "")
    )
    waits = f", and workers that answer in about {_time(workers_s)}" if workers_s else ""
    say(
        f"  An iteration: at most {_time(gpu.generation_s)} to write plans, "
        f"{_time(gpu.update_s)} to update weights{waits}. The run: "
        f"{_time(3600 * gpu.run_hours(settings.grpo.iterations, workers_s))}."
    )


def _gpu_figures(gpu: GPUEstimate) -> dict[str, Any]:
    """The estimate as JSON."""
    return {
        "gpu": gpu.gpu,
        "seen": gpu.seen,
        "ranks": gpu.ranks,
        "parameters": gpu.training.shape.parameters,
        "trained": gpu.training.trained_parameters,
        "memory": gpu.memory,
        "generation_s": gpu.generation_s,
        "update_s": gpu.update_s,
    }


def _number(count: int) -> str:
    return f"{count / 1e9:.2f} billion" if count >= 1e8 else f"{count / 1e6:.2f} million"


def _time(duration: float) -> str:
    return f"{duration / 3600:,.1f} hours" if duration >= 3600 else seconds(duration)


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:,.1f} MiB"


def _print_trials(trials: Sequence[WorkerTrial]) -> None:
    table = plain_table("worker", "", ">time", ">cost", ">score", "task")
    for trial in trials:
        table.add_row(
            Text(printable(trial.worker), "bold"),
            Text("ok", "green") if trial.answered else Text("failed", "red"),
            Text(seconds(trial.seconds)),
            Text(dollars(trial.cost_usd)),
            Text("" if trial.score is None else f"{trial.score:g}"),
            Text(shorten(trial.task, 32), "dim"),
        )
    open_console().print(table)
    for trial in trials:
        if trial.error is not None:
            say(f"{trial.worker}: {trial.error}")
    paid = sum(trial.cost_usd for trial in trials if trial.paid)
    answered = sum(trial.answered for trial in trials)
    say(f"{answered} of {len(trials)} answered; {dollars(paid)} spent.")
