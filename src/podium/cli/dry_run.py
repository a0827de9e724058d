"""`podium train --dry-run`: prints what a run would call, cost and need, and any reasons to refuse the run.

If there are no such reasons, it also tries the workers. `podium.train.dry_run` computes the figures.
"""

from __future__ import annotations

import json as json_
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from podium.cli.printable import counted, dollars, printable, ranged, seconds, shorten
from podium.cli.team_options import DispatchOptions, open_limited_dispatcher
from podium.cli.terminal import open_console, plain_table, print_sentence
from podium.errors import PodiumError
from podium.train.dry_run import DryRunSample, WorkerTrial, estimate_gpu, run_hours
from podium.train.gpu_estimate import GIB, GPUEstimate, Memory
from podium.train.opening import open_engine
from podium.train.preflight import Preflight, preflight
from podium.train.settings import TrainSettings
from podium.train.trained_policy import resolve
from podium.train.worker_estimate import WorkerEstimate


async def dry_run(settings: TrainSettings, run: Path | None, *, calls: DispatchOptions, json: bool) -> int:
    """Print the estimate. If the run would not be refused, try the workers too.

    Only the first rank does so. Returns the exit status: 1 if the run would be refused or a worker did not answer.
    """
    settings = resolve(settings, required=False)  # The preflight lists what is wrong with the start.
    ranks = open_engine(settings.engine).open_ranks(settings)
    if not ranks.is_first:
        return 0
    console = open_console()
    warnings: list[str] = []
    async with preflight(
        settings,
        run,
        ranks=ranks.size,
        run_budget_usd=calls.run_budget_usd,
        weights=False,
        on_warning=warnings.append,
    ) as checks:
        gpu = estimate_gpu(settings, checks, ranks=ranks.size)
        if not json:
            _print_run(console, settings, checks)
            for warning in warnings:
                print_sentence(console, warning)
            console.print()
            _print_workers(console, settings, checks.workers, calls.run_budget_usd)
            _print_gpu(console, settings, checks.workers, gpu)
            _print_problems(console, checks.problems)
        trials: tuple[WorkerTrial, ...] = ()
        if not checks.problems and checks.pool is not None and checks.tasks:
            sample = DryRunSample.of(checks.pool, checks.tasks)
            if not json:
                _print_announcement(console, sample)
            with open_limited_dispatcher(calls, checks.pool) as dispatcher:
                trials = await sample.run(dispatcher)
            if not json:
                _print_trials(console, trials)
    if json:
        document = {
            "iterations": settings.grpo.iterations,
            "problems": [str(problem) for problem in checks.problems],
            "tasks": checks.task_count,
            "longest_prompt": checks.longest_prompt,
            "workers": None if checks.workers is None else asdict(checks.workers),
            "gpu": None if gpu is None else asdict(gpu),
            "hours": None if gpu is None else run_hours(settings, checks.workers, gpu),
            "warnings": warnings,
            "trials": [asdict(trial) for trial in trials],
        }
        print(json_.dumps(document))
    return 1 if checks.problems or not all(trial.answered for trial in trials) else 0


def _print_run(console: Console, settings: TrainSettings, checks: Preflight) -> None:
    grpo = settings.grpo
    print_sentence(
        console,
        f"{counted(grpo.iterations, 'iteration')} of {counted(grpo.questions, 'question')} x {grpo.group} plans, "
        f"from {settings.start}, over the pool {settings.pool}; "
        f"{counted(checks.task_count, 'task')} of {settings.tasks}"
        + (f"; the longest prompt has {checks.longest_prompt:,} tokens." if checks.longest_prompt else "."),
    )


def _print_workers(
    console: Console, settings: TrainSettings, workers: WorkerEstimate | None, budget_usd: float | None
) -> None:
    if settings.scoring_url is not None:
        print_sentence(
            console,
            f"Workers: the scoring service at {settings.scoring_url} calls them. To try them, start a dry run there, "
            "without scoring_url.",
        )
        return
    if workers is None:
        print_sentence(console, "Workers: not estimated, since the pool or the tasks cannot be opened.")
        return
    calls, tokens = workers.calls, workers.tokens
    unpaid = "" if workers.paid else "; all of them are scripted or recorded, so nothing is paid"
    print_sentence(
        console,
        f"Workers: about {calls:,.0f} calls, "
        f"{tokens.likely:,.0f} tokens ({tokens.low:,.0f} to {tokens.high:,.0f}), "
        f"{ranged(dollars, workers.cost_usd)}{unpaid}.",
    )
    lengths = ", ".join(
        f"{dollars(usd)} for {counted(steps, 'step')}" for steps, usd in workers.cost_by_steps.items()
    )
    print_sentence(
        console,
        f"  This assumes {workers.plans:,} plans that can all be read, as long and as varied as random plans. "
        f"If all plans had the same length: {lengths}. Cached answers, retries and graders are not counted.",
    )
    likely, iterations = workers.cost_usd.likely, settings.grpo.iterations
    if budget_usd is not None and likely > budget_usd:
        done = int(iterations * budget_usd / likely)
        print_sentence(
            console,
            f"  --run-budget-usd of {dollars(budget_usd)} is likely to stop the run after {done:,} of "
            f"{counted(iterations, 'iteration')}; the same command with a larger budget continues it.",
        )


def _print_gpu(
    console: Console, settings: TrainSettings, workers: WorkerEstimate | None, gpu: GPUEstimate | None
) -> None:
    if gpu is None:
        print_sentence(console, "GPU: not estimated, since the model's sizes are not known.")
        return
    kind = f"{gpu.gpu.name} ({gpu.gpu.memory_gib:g} GiB{'' if gpu.seen else ', assumed'})"
    print_sentence(
        console,
        f"GPU, by formulas (docs/scaling.md): {_number(gpu.parameters)} parameters, "
        f"{_number(gpu.trained)} trained; memory on {gpu.ranks} x {kind}: {_memory(gpu.memory)} each; "
        f"shared by eight: {_memory(gpu.shared_by_8, parts=False)} each.{_too_large(gpu)}",
    )
    workers_s = 0.0 if workers is None else workers.iteration_s
    waits = f", and workers that answer in about {_time(workers_s)}" if workers_s else ""
    print_sentence(
        console,
        f"  An iteration: at most {_time(gpu.generation_s)} to write plans, "
        f"{_time(gpu.update_s)} to update weights{waits}. The run: {_time(3600 * run_hours(settings, workers, gpu))}.",
    )


def _print_problems(console: Console, problems: Sequence[PodiumError]) -> None:
    if problems:
        console.print()
        print_sentence(console, f"This run would be refused, for {counted(len(problems), 'reason')}:")
    for number, refusal in enumerate(problems, start=1):
        print_sentence(console, f"{number}. {refusal}")


def _number(count: int) -> str:
    return f"{count / 1e9:.2f} billion" if count >= 1e8 else f"{count / 1e6:.2f} million"


def _time(duration: float) -> str:
    return f"{duration / 3600:,.1f} hours" if duration >= 3600 else seconds(duration)


def _memory(memory: Memory, *, parts: bool = True) -> str:
    peak = _gib(memory.peak)
    if not parts:
        return peak
    names = ("weights", "gradients", "moments", "compute_copy", "activations", "logits", "generation")
    shown = (f"{name.replace('_', ' ')} {_gib(getattr(memory, name))}" for name in names)
    return f"{peak} ({', '.join(shown)})"


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f} GiB" if size >= GIB / 10 else f"{size / 2**20:,.1f} MiB"


def _too_large(gpu: GPUEstimate) -> str:
    if gpu.memory.peak <= gpu.gpu.memory_gib * GIB:
        return ""
    return " That is more than the GPU has: take more GPUs, a smaller grpo.micro_batch, or [lora]."


def _print_announcement(console: Console, sample: DryRunSample) -> None:
    price = f"about {ranged(dollars, sample.cost_usd)}"
    paid = f"This costs {price}, and what graders cost" if sample.paid else "This costs nothing"
    console.print()
    print_sentence(
        console,
        f"Nothing stops this run. Now each worker gets one question, and a grader grades the answer. {paid}:",
    )


def _print_trials(console: Console, trials: Sequence[WorkerTrial]) -> None:
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
    console.print(table)
    for trial in trials:
        if trial.error is not None:
            print_sentence(console, f"{trial.worker}: {trial.error}")
    paid = sum(trial.cost_usd for trial in trials if trial.paid)
    answered = sum(trial.answered for trial in trials)
    print_sentence(console, f"{answered} of {len(trials)} answered; {dollars(paid)} spent.")
