"""What it saves to run each plan as soon as it is written, and not when the whole batch is: seconds of one batch.

    python benchmarks/overlap.py [--questions 4] [--group 16]

The shipped start of the made-up world writes the plans through TRL, on one thread. Its workers are one endpoint on this
machine, which takes log-normal times to answer; each row has another median. Of one and the same batch the script
prints the time to write it, the time of its slowest plan, the sum of both, which it would take if all plans began at
the end, and the time that it took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from transformers import AutoTokenizer

from podium.calls import Dispatcher
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.codec import PlainTextCodec
from podium.rollout.run_folder import RunFolder
from podium.scoring import RolloutRequest, Score, ScoringSession
from podium.scoring.training_tasks import open_training_tasks
from podium.team.team_file import open_pool
from podium.train.metrics_recorder import Recorder
from podium.train.opening import open_engine
from podium.train.preflight import PreparedTraining
from podium.train.progress import Progress
from podium.train.run import make_job, run_in_thread
from podium.train.settings import TrainSettings
from podium.train.trained_policy import resolve
from podium.train.trl.ranks import AcceleratedRanks
from podium.types import Message
from podium.workers.pool import Pool
from podium_testing import FaultServer

MEDIANS_S = (0.5, 2.0, 8.0)
SIGMA = 0.7
"""Of the logarithm of the seconds: one call in a hundred takes five times the median."""


def write_pool(path: Path, url: str) -> None:
    """The names of the orchestra, which the start knows; every worker is the endpoint."""
    workers = [
        f'[[worker]]\nname = "{name}"\nkind = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'
        f'profile = "a model"\nlimits = {{ concurrency = 256, timeout = 600 }}\n'
        for name in open_pool("orchestra", ready=False).names
    ]
    path.write_text("\n".join(workers))


class TimedScoring:
    """The session, and how long each plan took."""

    def __init__(self, session: ScoringSession) -> None:
        self._session = session
        self.seconds: list[float] = []

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return await self._session.prompt(request)

    async def score(self, request: RolloutRequest) -> Score:
        began = time.perf_counter()
        score = await self._session.score(request)
        self.seconds.append(time.perf_counter() - began)
        return score


async def batch_seconds(experiment: TrainSettings, pool: Pool, folder: Path) -> tuple[float, float, float]:
    """Train on one batch; returns the seconds to write it, of its slowest plan, and until the last reward."""
    start = Checkpoint.read(experiment.start)
    session = ScoringSession(experiment, open_training_tasks(experiment, pool, print), pool, Dispatcher())
    scoring = TimedScoring(session)
    run = RunFolder.open(folder, experiment)
    tokenizer = AutoTokenizer.from_pretrained(start.path)
    prepared = PreparedTraining(pool, start, tokenizer, PlainTextCodec.of(start), session.tasks)
    recorder = Recorder(experiment, run=run, progress=Progress(print, noun="plans"))
    scored = scoring, list(session.tasks), ()
    job = make_job(experiment, folder, prepared, scored, ranks=AcceleratedRanks(), recorder=recorder)
    await run_in_thread(open_engine("trl"), job)
    (row,) = run.rows().read()
    seconds = row["seconds"]
    return seconds["sample"], max(scoring.seconds), seconds["sample"] + seconds["score"]


async def main(questions: int, group: int) -> None:
    """Measure and print."""
    median_s = 0.0

    async def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        content = messages[-1]["content"]
        text = f"{body['model']}/{content.rpartition('<<<your subtask')[2]}/{len(content)}"
        await asyncio.sleep(median_s * Random(text).lognormvariate(0.0, SIGMA))
        return "Answer: 7"

    print(f"{questions} questions x {group} plans; log-normal seconds of a call, sigma {SIGMA}")
    print("median of a call   to write   slowest plan   all at the end   as each is written   ratio")
    with TemporaryDirectory() as place:
        folder = Path(place)
        async with FaultServer(answer) as server:
            write_pool(folder / "pool.toml", server.url)
            experiment = resolve(
                TrainSettings.model_validate(
                    {
                        "engine": "trl",
                        "start": "world-warmstart",
                        "tasks": "world",
                        "task_limit": 40,
                        "pool": str(folder / "pool.toml"),
                        "prompt": {"guide": "", "levels": 0},  # TRL samples without a guide.
                        "trl": {"gradient_checkpointing": False},
                        "grpo": {
                            "iterations": 1,
                            "questions": questions,
                            "group": group,
                            "max_tokens": 160,
                            "micro_batch": 8,
                        },
                    }
                )
            )
            pool = open_pool(experiment.pool)
            for median_s in MEDIANS_S:
                write, slowest, took = await batch_seconds(experiment, pool, folder / str(median_s))
                late = write + slowest
                print(
                    f"{median_s:14.1f} s {write:8.1f} s {slowest:12.1f} s {late:14.1f} s {took:18.1f} s "
                    f"{took / late:7.2f}",
                    flush=True,
                )
            await pool.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--group", type=int, default=16)
    given = parser.parse_args()
    asyncio.run(main(given.questions, given.group))
