"""Trains three iterations at the size of the paper's run. Only the models are not real: the policy's and the workers'.

    python runs/paper-shape.py FOLDER

The configuration is configs/train/conductor-7b.toml. A random Qwen2 of two layers takes the place of the 7B model. It
is first trained on a few plans, so that it calls workers. The seven workers are those of the pool paper-constrained,
with their settings and prices; Podium asks all of them by chat completions. One endpoint on this machine answers for
them: at times it refuses (429), hangs, or cuts its reply.

First 3 iterations of 4 x 64 rollouts. Then a run of 6 iterations of 2 x 16 whose budget does not suffice, and which
goes on with a larger one. After each the script checks that every rollout has a trace, that no answer was paid for
twice, and that the run's spend limit is what the endpoint bills.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from random_model import make_model

from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.trace import Trace
from podium.types import MAX_USD
from podium.workers.pool import pool_file
from podium_testing import Answer, FaultServer, Received, Rule
from podium_testing.faults import Hang, HangUp, RateLimited, Reset, TruncatedJson

CONFIG = str(Path(__file__).parents[1] / "configs" / "train" / "conductor-7b.toml")
QUESTIONS = 40
RULES = [
    Rule(fault=RateLimited(retry_after=0.1), share=0.04),
    Rule(fault=TruncatedJson(), share=0.02),
    Rule(fault=HangUp(when="middle"), share=0.01),
    Rule(fault=Reset(), share=0.01),
    Rule(fault=Hang(), share=0.02),
]
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
SMALL = (
    "tasks=sums.jsonl", "pool=pool.toml", "held_out=[]", "prompt.examples=0",
    "trl.bf16=false", "trl.gradient_checkpointing=false", "trl.use_vllm=false",
)  # fmt: skip
SFT = ("sft.examples=plans.jsonl", "sft.lr=1e-2", "sft.batch=2", "sft.micro_batch=2")
GRPO = ("grpo.iterations=3", "grpo.max_tokens=96", "grpo.micro_batch=32", "grpo.save_every=1")
BUDGET_USD = 50.0
"""More than the run needs."""


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


def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    """The sum, or a wrong one: by the text of the question and the model, half of each."""
    a, b = map(int, re.findall(r"What is (\d+) \+ (\d+)", messages[-1]["content"])[0])
    rng = Random(f"{body['model']}/{body.get('reasoning')}/{a}/{b}")
    return Answer(
        f"Let me add.\nAnswer: {a + b + (rng.random() < 0.5)}", output_tokens=rng.randrange(200, 1500)
    )


async def podium(folder: Path, *tokens: str, status: int = 0) -> None:
    """One command in the folder; ends the script if its exit status is another."""
    environment = os.environ | dict.fromkeys(KEYS, "a-key") | {"OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "podium", *tokens), cwd=folder, env=environment
    )
    if await process.wait() != status:
        raise SystemExit(f"podium {' '.join(tokens)} ended with {process.returncode}, and not with {status}")
    print(f"{tokens[2]}: {time.monotonic() - began:.0f} s", flush=True)


async def main(folder: Path) -> None:
    """Teach, train, check."""
    train = ("train", "--run")
    async with FaultServer(answer, rules=RULES, seed="paper") as provider:
        write_pool(folder / "pool.toml", provider.url)
        await podium(
            folder, *train, "form", "--config", CONFIG, "--stage", "sft", "start=start", *SMALL, *SFT
        )
        assert not provider.requests, "supervision calls no worker"

        grpo = ("--config", CONFIG, "start=form/policy", *SMALL, *GRPO)
        await podium(folder, *train, "run", *grpo, "--run-budget-usd", str(BUDGET_USD))
        await provider.wait_until_idle()
        first = check(folder / "run", provider.requests, rollouts=768, budget_usd=BUDGET_USD)

        seen, limit = len(provider.requests), 0.3 * first
        short = (*train, "short", *grpo, "grpo.iterations=6", "grpo.questions=2", "grpo.group=16")
        await podium(folder, *short, "--run-budget-usd", str(limit), status=1)
        await provider.wait_until_idle()
        check(folder / "short", provider.requests[seen:], rollouts=None, budget_usd=limit)
        await podium(folder, *short, "--run-budget-usd", str(BUDGET_USD))
        await provider.wait_until_idle()
        check(folder / "short", provider.requests[seen:], rollouts=192, budget_usd=BUDGET_USD)


def check(run: Path, requests: Sequence[Received], *, rollouts: int | None, budget_usd: float) -> float:
    """Print what happened, and check it; returns the dollars of the run's spend limit.

    Args:
        rollouts: that the run has, or None if its budget stopped it.
    """
    workers = tomllib.loads((run.parent / "pool.toml").read_text())["worker"]
    prices = {worker["model"]: worker["price"] for worker in workers}

    def usd(request: Received) -> float:
        price = prices[request.model]
        return 1e-6 * (request.input_tokens * price["input"] + request.output_tokens * price["output"])

    whole = [request for request in requests if request.fault is None and not request.went_away]
    failed = [request for request in requests if request.fault is not None or request.went_away]
    with closing(SharedSpendLimit(run / "spending.sqlite", "run", MAX_USD)) as spend_limit:
        spent, reserved = spend_limit.spent_usd, spend_limit.reserved_usd
    with TraceStore(run / "traces.sqlite", create=False) as store:
        traces = list(store.iterate())
    billed, lost = sum(map(usd, whole)), sum(map(usd, failed))
    answered = Counter(map(_asked, whole))
    wanted = _wanted(traces, {worker["name"]: worker for worker in workers})
    # A rollout that the budget ended has no trace, so its calls are wanted by none.
    twice = sum(max(0, times - max(1, wanted[call])) for call, times in answered.items())
    print(
        f"{run.name}: {len(traces)} traces, {sum(trace.calls for trace in traces)} calls in their plans, "
        f"{len(whole)} answers paid for, {twice} of them twice; the most wanted one has "
        f"{max(Counter(_calls(traces)).values(), default=0)} calls"
    )
    print(f"  failed: {dict(Counter(request.fault or 'gone' for request in failed))}")
    print(
        f"  billed ${billed:.6f}, spend limit ${spent:.6f} of ${budget_usd:.6f}, reserved ${reserved:.6f}; "
        f"replies that were cut, which no spend limit can know: ${lost:.6f}"
    )
    assert abs(billed - spent) < 0.005
    assert reserved == 0.0
    assert spent <= budget_usd
    assert twice == 0
    if rollouts:
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        print(
            "  rewards",
            [round(row["reward"], 3) for row in rows],
            "dropped",
            [row["dropped"] for row in rows],
        )
        assert len(traces) == rollouts
        # A rollout that a second start scores again has a new trace, and costs nothing in it.
        assert sum(trace.cost_usd for trace in traces) < spent + 0.005
    return spent


Call = tuple[str, str, str]
"""A model, how it is to reason, and the messages, without the question's random mark."""


def _asked(request: Received) -> Call:
    return str(request.model), str(request.body.get("reasoning")), _without_mark(request.text)


def _wanted(traces: Sequence[Trace], workers: dict[str, dict[str, Any]]) -> Counter[Call]:
    """How often each call has to be answered: as often as one rollout makes it, for all rollouts together."""
    most: Counter[Call] = Counter()
    for trace in traces:
        most |= Counter(
            (workers[name]["model"], str(workers[name].get("extra", {}).get("reasoning")), text)
            for name, text in _calls([trace])
        )
    return most


def _calls(traces: Sequence[Trace]) -> list[tuple[str, str]]:
    return [
        (span.worker, _without_mark("\n".join(message.content for message in span.messages)))
        for trace in traces
        for span in trace.spans
        if span.called
    ]


def _without_mark(text: str) -> str:
    return text.replace(re.findall(r"carry the mark (\w+)", text)[0], "")


if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    FOLDER.mkdir(parents=True)
    write_questions(FOLDER / "sums.jsonl")
    write_plans(FOLDER / "plans.jsonl", FOLDER / "sums.jsonl")
    make_model(FOLDER / "start", "qwen2")
    asyncio.run(main(FOLDER))
