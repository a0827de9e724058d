"""Plans a second of a small local policy in NumPy: token by token, one, sixteen and all at a time; and transformers.

    python benchmarks/plans.py --plans 200
    python benchmarks/plans.py --checkpoint runs/mine/policy --pool mine.toml --tasks mine.parquet --max-steps 6

"Token by token" is the plain way: one text, one token a pass, nothing shared and nothing drafted. The number of
texts that equal those of the plain way is printed, and a digest of all texts: two releases that plan the same print
the same. An evaluation asks sixteen at a time unless its `concurrency` says otherwise. Each way opens the policy
anew, before the time starts, since a policy remembers its completions. The peer is transformers' `generate` on sixteen
prompts, padded on the left, on one thread; it has no guide, so its texts may differ.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from operator import eq
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it when it is imported.

from podium.conductor import Checkpoint, Sampling, build_prompt, open_policy
from podium.planners.planner import PlanRequest
from podium.tasks import open_tasks
from podium.team.team_file import open_pool
from podium.types import Message
from podium_lab.inference.llama import Llama, Shape, read_weights
from podium_lab.inference.numpy_model import NumpyModel
from rows import Row, report

Prompts = Sequence[tuple[Message, ...]]
Write = Callable[[Prompts], list[str]]
_LIMIT = 384
WORK = "plans of a shipped policy, 16 questions at once"


def token_by_token(checkpoint: Checkpoint) -> Write:
    """The plain way."""
    llama = Llama(Shape.of(checkpoint.config), read_weights(checkpoint.path / "model.safetensors"))
    model = NumpyModel(checkpoint)

    def write(prompts: Prompts) -> list[str]:
        texts = []
        for prompt in prompts:
            cache, news, tokens = llama.start(model.context), model.codec.encode(prompt), list[int]()
            while len(tokens) < _LIMIT and (not tokens or tokens[-1] not in model.eos_token_ids):
                tokens.append(int(llama.logits(llama.read(news, cache)[-1]).argmax()))
                news = tokens[-1:]
            texts.append(model.codec.decode([token for token in tokens if token not in model.eos_token_ids]))
        return texts

    return write


def at_once(checkpoint: Checkpoint, most: int) -> Write:
    """By the policy, so many at a time."""
    policy = open_policy(checkpoint)

    async def write_all(prompts: Prompts) -> list[str]:
        free = asyncio.Semaphore(most)

        async def write(prompt: tuple[Message, ...]) -> str:
            async with free:
                return (await policy.complete(prompt, Sampling())).text

        return await asyncio.gather(*map(write, prompts))

    return lambda prompts: asyncio.run(write_all(prompts))


def by_transformers(checkpoint: Checkpoint, most: int) -> Write:
    """By the peer, so many in a batch."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: PLC0415

    torch.set_num_threads(1)
    # AutoTokenizer would split the text as Qwen2's own tokenizer does, whatever tokenizer.json says.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint.path, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(checkpoint.path, dtype=torch.float32)

    def write(prompts: Prompts) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(prompts), most):
            some = prompts[start : start + most]
            given = [f"{tokenizer.bos_token}{prompt[0].content}" for prompt in some]
            encoded = tokenizer(given, return_tensors="pt", padding=True, add_special_tokens=False)
            encoded.pop("token_type_ids", None)
            with torch.inference_mode():
                written = model.generate(**encoded, max_new_tokens=_LIMIT, do_sample=False)
            texts += tokenizer.batch_decode(
                written[:, encoded["input_ids"].shape[1] :], skip_special_tokens=True
            )
        return texts

    return write


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("--checkpoint", default="world-conductor")
    parser.add_argument("--pool", default="orchestra")
    parser.add_argument("--tasks", default="world")
    parser.add_argument("--max-steps", type=int, default=5)
    parser.add_argument("--no-peer", action="store_true", help="leave transformers out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    checkpoint, pool = Checkpoint.read(options.checkpoint), open_pool(options.pool)
    tasks = open_tasks(options.tasks, "validation", size=options.plans, pool=pool)
    requests = [
        PlanRequest(task.question, pool.profiles_for(task.question.text), max_steps=options.max_steps)
        for task in tasks
    ]
    prompts = [build_prompt(request, checkpoint.prompt) for request in requests]
    ways: dict[str, Callable[[], Write]] = {
        "token by token": lambda: token_by_token(checkpoint),
        "one at a time": lambda: at_once(checkpoint, 1),
        "sixteen at a time": lambda: at_once(checkpoint, 16),
        "all at a time": lambda: at_once(checkpoint, len(prompts)),
    }
    if not options.no_peer:
        ways["transformers, sixteen"] = lambda: by_transformers(checkpoint, 16)
    rates: dict[str, float] = {}
    plain: tuple[float, float, list[str]] | None = None
    for way, opened in ways.items():
        write = opened()
        began, spent = time.perf_counter(), time.process_time()
        texts = write(prompts)
        rate = len(prompts) / (time.process_time() - spent)
        wall = len(prompts) / (time.perf_counter() - began)
        plain, rates[way] = plain or (wall, rate, texts), rate
        times = f"{rate:7.1f} a second of processor time ({rate / plain[1]:.1f} x)"
        equal = sum(map(eq, texts, plain[2]))
        print(
            f"{way:22} {wall:7.1f} plans/s, {times}, {equal} of {len(prompts)} texts equal, "
            f"digest {hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}",
            flush=True,
        )
    assert plain is not None
    theirs = rates.get("transformers, sixteen")
    rows = [
        Row(
            f"{WORK}, per second of one core's time",
            rates["sixteen at a time"],
            "",
            "transformers' generate" if theirs else None,
            theirs,
            "≥ 3" if theirs else "",
        )
    ]
    report(rows, options.json)


if __name__ == "__main__":
    main()
