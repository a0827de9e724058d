"""Seconds of a GRPO iteration over scripted workers, beside TRL with the same model, questions and rewards; one core.

python benchmarks/grpo.py [--iterations 3] [--no-peer] [--json FILE]

Podium and TRL train in turn, an iteration each: 256 rollouts of the shipped warm start, in fp32. The first iteration of
both warms up and is left out. TRL's trainer has no code of ours but the reward. The matrix products' own time is that
of every product of the same iterations: Podium trains them once before, draws the same tokens, and times each product.
Ratio and share are of processor time, which other work on the machine changes less; both trainers use one thread.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # It takes effect only where torch is not loaded yet.

from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedTokenizerFast, PrinterCallback, TrainerCallback

from podium.calls import CallState
from podium.conductor import Checkpoint, build_prompt
from podium.conductor.codec import PlainTextCodec
from podium.planners.planner import PlanRequest, PrewrittenPlans
from podium.rollout import reward, run_rollout
from podium.tasks import Task
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.train.engine import TrainingJob
from podium.train.grpo_run import run_grpo
from podium.train.runtime import compute_on_one_core
from podium.train.schedule import generate_tasks
from podium.train.settings import TrainSettings
from podium.train.shared_prefix import grpo as grpo_engine
from podium.train.start import resolve
from rows import Row, report

WORK = "GRPO iteration, 256 rollouts, one core, fp32"
CONFIG = Path(__file__).with_name("grpo.toml")
MICRO_BATCH = 32
"""Of TRL; the fastest of 16, 32, 64 and 256 here."""


class Products(TorchDispatchMode):
    """Adds up the processor seconds of the matrix products that run inside."""

    NAMES = ("mm", "addmm", "bmm", "baddbmm", "baddbmm_")

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        began = time.process_time()
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in self.NAMES:
            self.seconds += time.process_time() - began
        return result


def write_pool(path: Path, tasks: Iterable[Task]) -> Path:
    """Workers with the names and profiles of the orchestra, each of whom is right on half of the questions."""
    tables = []
    for profile in open_pool("orchestra", ready=False).profiles:
        lucky = Random(f"grpo/{profile.name}")
        replies = ", ".join(
            f"{json.dumps(task.question.text)} = {json.dumps(f'Answer: {lucky.choice((task.gold, None))}')}"
            for task in tasks
        )
        tables.append(
            f'[[worker]]\nname = "{profile.name}"\nkind = "scripted"\nprofile = {json.dumps(profile.description)}\n'
            f"replies = {{ {replies} }}\nprice = {{ input = 1.0, output = 6.0 }}\n"
        )
    path.write_text("\n".join(tables))
    return path


def train(settings: TrainSettings, ended: Callable[[Mapping[str, Any]], None]) -> None:
    """Train with Podium."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_grpo(settings, Path(folder) / "run", on_metrics=ended))


class Seconds(TrainerCallback):
    """The processor time of TRL's latest step."""

    latest = 0.0
    _began = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._began = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.latest = time.process_time() - self._began


class Peer:
    """TRL's trainer, which takes one step at a time."""

    def __init__(self, settings: TrainSettings, folder: Path) -> None:
        from datasets import Dataset  # noqa: PLC0415
        from trl.trainer.grpo_config import GRPOConfig  # noqa: PLC0415
        from trl.trainer.grpo_trainer import GRPOTrainer  # noqa: PLC0415

        grpo = self.grpo = settings.grpo
        self.settings = settings
        self.start = Checkpoint.read(settings.start)
        self.tasks: list[Task] = []
        self.drawn = list(generate_tasks(settings).values())
        self.dataset, self.seconds = Dataset, Seconds()
        batch = grpo.questions * grpo.group
        self.trainer = GRPOTrainer(
            model=str(self.start.path),
            reward_funcs=self.reward,
            args=GRPOConfig(
                output_dir=str(folder),
                max_steps=1,
                learning_rate=grpo.lr,
                lr_scheduler_type="constant",
                weight_decay=0.0,
                num_generations=grpo.group,
                per_device_train_batch_size=MICRO_BATCH,
                gradient_accumulation_steps=batch // MICRO_BATCH,
                max_completion_length=grpo.max_tokens,
                temperature=grpo.temperature,
                loss_type="bnpo",
                beta=0.0,
                activation_checkpointing=False,
                shuffle_dataset=False,
                use_cpu=True,
                bf16=False,
                save_strategy="no",
                logging_steps=1,
                report_to="none",
                disable_tqdm=True,
                model_init_kwargs={"dtype": "float32"},
            ),
            train_dataset=self.questions(0),
            # AutoTokenizer would split the text as Qwen2's own tokenizer does, whatever tokenizer.json says.
            processing_class=PreTrainedTokenizerFast.from_pretrained(self.start.path),
            callbacks=[self.seconds],
        )
        self.trainer.remove_callback(PrinterCallback)

    def questions(self, iteration: int) -> Any:
        """The prompts of an iteration, as Podium writes them."""
        pool = open_pool(self.settings.pool)
        first = iteration * self.grpo.questions
        self.tasks = self.drawn[first : first + self.grpo.questions]
        prompts = []
        for task in self.tasks:
            request = PlanRequest(
                task.question, pool.profiles_for(task.question.text), max_steps=self.settings.max_steps
            )
            messages = build_prompt(request, self.start.prompt)
            tokens = PlainTextCodec.of(self.start).encode(messages)
            prompts.append(self.start.tokenizer().decode(tokens, skip_special_tokens=False))
        return self.dataset.from_dict({"prompt": prompts, "number": list(range(len(prompts)))})

    def step(self, iteration: int) -> tuple[float, float]:
        """Processor seconds of one iteration, and the mean tokens of its completions."""
        self.trainer.train_dataset = self.questions(iteration)
        self.trainer.train()
        logged = next(row for row in self.trainer.state.log_history if "completions/mean_length" in row)
        return self.seconds.latest, logged["completions/mean_length"]

    def reward(self, completions: list[str], number: list[int], **_: Any) -> list[float | None]:
        """What Podium's scorer gives for the same plans."""

        async def score_all() -> list[float | None]:
            pool, call_state, settings = open_pool(self.settings.pool), CallState(), self.settings.reward
            scores = [
                run_rollout(
                    Runner(PrewrittenPlans((text,)), pool, call_state=call_state),
                    self.tasks[which],
                    seed=f"peer/{place}",
                )
                for place, (text, which) in enumerate(zip(completions, number, strict=True))
            ]
            rewards = [reward(rollout, settings) for rollout in await asyncio.gather(*scores)]
            return [None if earned is None else earned.total for earned in rewards]

        with ThreadPoolExecutor(1) as thread:  # An event loop already runs in this one.
            return thread.submit(asyncio.run, score_all()).result()


def products_s(settings: TrainSettings) -> list[float]:
    """The processor seconds that the matrix products of each iteration take by themselves."""
    seconds: list[float] = []
    products, plain = Products(), grpo_engine.train

    def watched(job: TrainingJob) -> None:
        with products:  # It sees the products of its own thread, which the engine trains in.
            plain(job)

    grpo_engine.train = watched
    try:
        train(settings, lambda row: seconds.append(products.seconds))
    finally:
        grpo_engine.train = plain
    return [after - before for before, after in zip([0.0, *seconds], seconds, strict=False)]


def rows_of(
    parts: list[Mapping[str, float]],
    ours: list[float],
    products: list[float],
    theirs: list[float],
    title: str,
) -> list[Row]:
    """What is reported: medians without the first iteration."""
    totals = ours[1:]
    ratio = [their_s / our_s for their_s, our_s in zip(theirs[1:], totals, strict=False)]
    share = [own / total for own, total in zip(products[1:], totals, strict=True)]
    middle = {part: median(each[part] for each in parts[1:]) for part in parts[0]}
    rows = [Row(f"{WORK}: {part}", seconds, "s", higher_is_better=False) for part, seconds in middle.items()]
    if theirs:
        iterations = 1 / median(totals)
        rows.append(
            Row(f"{WORK}: iterations a second", iterations, "", title, iterations / median(ratio), "≥ 6")
        )
    rows.append(Row(f"{WORK}: share of the matrix products' own time", median(share), "", goal="≥ 0.5"))
    return rows


def main(iterations: int, file: Path | None, *, peer: bool) -> None:
    """Measure, print, and write the rows to `file`."""
    compute_on_one_core()
    tables = tomllib.loads(CONFIG.read_text())
    tables |= {"dtype": "fp32"}
    tables["grpo"] |= {"iterations": iterations, "save_every": iterations}
    settings = resolve(TrainSettings.model_validate(tables))
    made = tempfile.TemporaryDirectory()
    pool = write_pool(Path(made.name) / "pool.toml", generate_tasks(settings).values())
    settings = settings.model_copy(update={"pool": str(pool)})
    products = products_s(settings)
    parts: list[Mapping[str, float]] = []
    ours: list[float] = []
    theirs: list[float] = []
    title, began = "", 0.0
    with tempfile.TemporaryDirectory() as folder:
        opened = None
        if peer:
            import trl  # noqa: PLC0415

            title, opened = f"TRL {trl.__version__}", Peer(settings, Path(folder))

        def ended(row: Mapping[str, Any]) -> None:
            nonlocal began
            ours.append(time.process_time() - began)
            parts.append(row["seconds"])
            written = ", ".join(f"{name} {value:.2f}" for name, value in row["seconds"].items())
            print(
                f"Podium {ours[-1]:.2f} s of processor time (by the clock {written}; "
                f"{row['completion_tokens']:.0f} tokens)"
            )
            if opened is not None:
                seconds, tokens = opened.step(row["iteration"])
                theirs.append(seconds)
                print(f"{title} {seconds:.2f} s of processor time ({tokens:.0f} tokens)", flush=True)
            began = time.process_time()

        began = time.process_time()
        train(settings, ended)
    report(rows_of(parts, ours, products, theirs, title), file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true", help="leave TRL out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    main(options.iterations, options.json, peer=not options.no_peer)
