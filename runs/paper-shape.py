"""Trains three iterations at the size of the paper's run. Only the models are not real: the policy's and the workers'.

    python runs/paper-shape.py FOLDER

The configuration is configs/train/conductor-7b.toml. A random Qwen2 of two layers takes the place of the 7B model. It
is first trained on a few plans, so that it calls workers. The seven workers are those of the pool paper-constrained,
with their settings and prices. One endpoint on this machine answers for all of them; at times it refuses (429), hangs,
or cuts its reply. The script checks that there are 768 traces, one of each rollout, and that the run's account and the
endpoint's bill differ by less than half a cent. It prints how often the most repeated call was answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tomllib
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

from random_model import make_model

from podium.executor.accounts import UNLIMITED_USD, Account
from podium.testing import FaultServer, Rule
from podium.testing.faults import Hang, RateLimited, TruncatedJson
from podium.trace.store import TraceStore
from podium.workers.pool import pool_file

ROOT = Path(__file__).parents[1]
QUESTIONS = 40
RULES = [
    Rule(fault=RateLimited(retry_after=0.1), share=0.04),
    Rule(fault=TruncatedJson(), share=0.02),
    Rule(fault=Hang(), share=0.003),
]
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")


def write_questions(path: Path) -> None:
    """Sums; half of the workers' answers to them are right."""
    rng = Random("paper shape")
    with path.open("w") as file:
        for number in range(QUESTIONS):
            a, b = rng.randrange(100, 999), rng.randrange(100, 999)
            row = {
                "id": f"sum-{number}",
                "question": f"What is {a} + {b}?",
                "answer": str(a + b),
                "split": "train",
            }
            file.write(json.dumps(row) + "\n")


def write_pool(path: Path, url: str) -> None:
    """The shipped pool, every address being the endpoint's, and a time limit that a test can wait for."""
    text = pool_file("paper-constrained").read_text()
    text = re.sub(r'base_url = "[^"]*"', f'base_url = "{url}"', text)
    path.write_text(re.sub(r"timeout = \d+", "timeout = 5", text))


def write_plans(path: Path, questions: Path) -> None:
    """Examples: one worker, or one and a second that checks it, for each of the seven."""
    rng = Random("plans")
    with path.open("w") as file:
        for line in questions.read_text().splitlines() * 8:
            first, second = rng.randrange(7), rng.randrange(7)
            plan = f'model_id = [{first}]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
            if rng.random() < 0.5:
                plan = (
                    f'model_id = [{first}, {second}]\nsubtasks = ["Solve it.", "Check it."]\n'
                    'access_list = [[], ["all"]]'
                )
            file.write(json.dumps({"question": json.loads(line)["question"], "plan": plan}) + "\n")


def answer(messages: list[dict[str, str]], body: dict[str, object]) -> str:
    """The sum, or a wrong one: by the text of the question and the model, half of each."""
    a, b = map(int, re.findall(r"What is (\d+) \+ (\d+)", messages[-1]["content"])[0])
    wrong = Random(f"{body['model']}/{a}/{b}").random() < 0.5
    return f"Let me add.\nAnswer: {a + b + wrong}"


async def podium(folder: Path, *tokens: str) -> None:
    """One command in the folder; raises with what it said if it fails."""
    environment = os.environ | dict.fromkeys(KEYS, "a-key") | {"OMP_NUM_THREADS": "1"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podium", *tokens), cwd=folder, env=environment
    )
    if await process.wait():
        raise SystemExit(f"podium {' '.join(tokens)} failed")


async def main(folder: Path) -> None:
    """Teach, train, check."""
    write_questions(folder / "sums.jsonl")
    write_plans(folder / "plans.jsonl", folder / "sums.jsonl")
    make_model(folder / "start", "qwen2")
    config = str(ROOT / "configs" / "train" / "conductor-7b.toml")
    ours = (
        "tasks=sums.jsonl", "pool=pool.toml", "held_out=[]", "trl.bf16=false", "trl.gradient_checkpointing=false",
        "trl.use_vllm=false",
    )  # fmt: skip
    async with FaultServer(answer, rules=RULES, seed="paper") as provider:
        write_pool(folder / "pool.toml", provider.url)
        await podium(
            folder, "train", "--run", "form", "--config", config, "--stage", "sft", "start=start", *ours,
            "sft.examples=plans.jsonl", "sft.epochs=4", "sft.lr=3e-3", "sft.batch=8", "sft.micro_batch=8",
        )  # fmt: skip
        assert not provider.requests, "supervision asks nobody"
        await podium(
            folder, "train", "--run", "run", "--config", config, "start=form/policy", *ours,
            "grpo.iterations=3", "grpo.max_tokens=96", "grpo.micro_batch=32", "grpo.save_every=1",
            "--run-budget-usd", "50",
        )  # fmt: skip
        report(folder / "run", provider)


def report(run: Path, provider: FaultServer) -> None:
    """Print what happened, and check it."""
    good = [request for request in provider.requests if request.status == 200 and request.fault is None]
    times = Counter((request.model, request.text) for request in good)
    pool = tomllib.loads((run.parent / "pool.toml").read_text())
    prices = {worker["model"]: worker["price"] for worker in pool["worker"]}
    billed = 1e-6 * sum(
        request.input_tokens * prices[request.model]["input"]
        + request.output_tokens * prices[request.model]["output"]
        for request in good
    )
    with closing(Account(run / "spending.sqlite", "run", UNLIMITED_USD)) as account:
        spent = account.spent_usd
    with TraceStore(run / "traces.sqlite", create=False) as store:
        traces = list(store.iterate())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    calls = sum(trace.calls for trace in traces)
    faults = Counter(request.fault for request in provider.requests if request.fault is not None)
    print(
        f"{len(traces)} rollouts with a trace; their plans have {calls} calls, of which {len(times)} were made"
    )
    print(f"replies that failed besides: {dict(faults)}")
    print(
        f"most times that one call was answered: {max(times.values())}; billed ${billed:.6f}, account ${spent:.6f}"
    )
    print("rewards:", [round(row["reward"], 3) for row in rows], "dropped:", [row["dropped"] for row in rows])
    assert len(traces) == 768
    assert len(rows) == 3
    assert abs(billed - spent) < 0.005


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True)
    asyncio.run(main(Path(sys.argv[1])))
