"""Tokens a second of the worker kinds `gguf` and `local`, beside the same calls by hand.

    python benchmarks/local_workers.py gguf FILE [--slots 4] [--threads 2] [--turns 3] [--json FILE]
    python benchmarks/local_workers.py local FOLDER [--turns 3] [--json FILE]

By hand means openai's client on llama.cpp's own server (`runs/published_models.py serve`) with the same file, slots and
threads; and for a Hugging Face folder (`runs/published_models.py convert`) transformers' `generate` in float32, as
Podium runs it, with batches of the size of Podium's. Podium's figure is of whole questions, from `Team.ask`; all are
asked at once. By hand has the same messages and limits, and both decode greedily. They take turns,
and each opens the model anew and answers another question first, so that neither remembers anything. Per second of
processor time counts all processes of a way, so that it is the steadier figure on a machine that does other work too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from openai import AsyncOpenAI

from podium import Team
from podium.types import Message
from rows import Row, report
from serve_clients import cpu
from sums import QUESTIONS
from swapped_servers import free_port, served

CONTEXT = 1024
"""Tokens of a call."""
BATCH = 8
"""Texts that Podium's model over transformers writes at once (`TorchModel.batch`)."""
WARM_UP = "Say hello."
Chats = Sequence[Sequence[Message]]


@dataclass(frozen=True, slots=True)
class Speed:
    """What one turn wrote."""

    tokens: int
    seconds: float
    cpu_s: float


class Clock:
    """Seconds since it was made, and of processor time of this process and its children."""

    def __init__(self) -> None:
        self._began, self._cpu_s = time.perf_counter(), cpu(os.getpid())

    def speed(self, tokens: int) -> Speed:
        """What was written since then."""
        return Speed(tokens, time.perf_counter() - self._began, cpu(os.getpid()) - self._cpu_s)


def team_of(folder: str, kind: str, more: str, slots: int, most: int) -> Path:
    """A team file with one worker."""
    path = Path(folder, "team.toml")
    path.write_text(
        f'[[worker]]\nname = "one"\nkind = "{kind}"\ntemperature = 0.0\n{more}\n'
        f"limits = {{ concurrency = {slots}, max_tokens = {most}, retries = 0, timeout = 600 }}\n"
    )
    return path


async def with_podium(path: Path, questions: Sequence[str]) -> tuple[Speed, Chats]:
    """Ask all questions at once; the messages that the worker got are returned too."""
    async with Team.open(path, planner="single:one") as team:
        await team.ask(WARM_UP)
        clock = Clock()
        traces = await asyncio.gather(*(team.ask(text, seed="benchmark") for text in questions))
        speed = clock.speed(sum(trace.usage.output_tokens for trace in traces))
    assert all(trace.status == "ok" for trace in traces), [trace.error for trace in traces]
    return speed, [trace.spans[0].messages for trace in traces]


async def with_client(url: str, chats: Chats, most: int) -> Speed:
    """The same calls of a server, by openai's client alone."""
    async with AsyncOpenAI(base_url=url, api_key="none", timeout=600, max_retries=0) as client:

        async def answer(messages: Sequence[Message]) -> int:
            reply = await client.chat.completions.create(
                model="m",
                messages=[{"role": message.role, "content": message.content} for message in messages],
                temperature=0.0,
                max_tokens=most,
                extra_body={"cache_prompt": False},
            )
            assert reply.usage is not None
            return reply.usage.completion_tokens

        await answer([Message(role="user", content=WARM_UP)])
        clock = Clock()
        return clock.speed(sum(await asyncio.gather(*map(answer, chats))))


def with_llama_cpp(file: Path, slots: int, threads: int, chats: Chats, most: int) -> Speed:
    """llama.cpp's server by hand."""
    with served(file, free_port(), "m", slots=slots, context=slots * CONTEXT, threads=threads) as url:
        return asyncio.run(with_client(url, chats, most))


def with_generate(folder: Path, chats: Chats, most: int) -> Speed:
    """The same calls by transformers' `generate`."""
    import torch  # noqa: PLC0415 - `gguf` needs neither
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)

    def answer(batch: Chats) -> int:
        chosen = [[{"role": one.role, "content": one.content} for one in chat] for chat in batch]
        read = tokenizer.apply_chat_template(
            chosen, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
        )
        with torch.inference_mode():
            written = model.generate(**read, do_sample=False, max_new_tokens=most)
        ended = written[:, read["input_ids"].shape[1] :] == model.generation_config.eos_token_id
        return sum(int(row.int().argmax()) + 1 if row.any() else len(row) for row in ended)

    answer([[Message(role="user", content=WARM_UP)]])
    clock = Clock()
    return clock.speed(sum(answer(chats[first : first + BATCH]) for first in range(0, len(chats), BATCH)))


def rows(
    path: Path, kind: str, questions: Sequence[str], turns: int, peers: dict[str, Callable[[Chats], Speed]]
) -> list[Row]:
    """Ask in turns. The figures are medians; the ratio is of the medians."""
    _, chats = asyncio.run(with_podium(path, questions))
    speeds: dict[str, list[Speed]] = {"Podium": [], **{name: [] for name in peers}}
    for turn in range(turns):
        names = [*speeds]
        for name in names if turn % 2 == 0 else reversed(names):
            speed = asyncio.run(with_podium(path, questions))[0] if name == "Podium" else peers[name](chats)
            speeds[name].append(speed)
            print(
                f"{name}: {speed.tokens} tokens, {speed.seconds:.1f} s, {speed.cpu_s:.1f} s of processors",
                flush=True,
            )
    elapsed = {name: median(one.tokens / one.seconds for one in taken) for name, taken in speeds.items()}
    computed = {name: median(one.tokens / one.cpu_s for one in taken) for name, taken in speeds.items()}
    return [
        Row(f"a worker of kind {kind}{of}", figures["Podium"], "tokens/s", name, figures[name], "ratio ≥ 0.9")
        for of, figures in (("", elapsed), (", per second of processor time", computed))
        for name in peers
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("gguf", "local"))
    parser.add_argument("model", type=Path)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=96, help="the most of an answer")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    model, slots, threads, most = given.model.absolute(), given.slots, given.threads, given.tokens
    peers: dict[str, Callable[[Chats], Speed]]
    if given.kind == "gguf":
        more = f'file = "{model}"\ncontext_tokens = {CONTEXT}\nthreads = {threads}\nextra = {{ cache_prompt = false }}'
        peers = {"llama.cpp by hand": lambda chats: with_llama_cpp(model, slots, threads, chats, most)}
    else:
        import torch  # noqa: PLC0415 - `gguf` needs none

        torch.set_num_threads(threads)
        slots, more = 64, f'path = "{model}"'
        peers = {"transformers by hand": lambda chats: with_generate(model, chats, most)}
    with TemporaryDirectory() as folder:
        path = team_of(folder, given.kind, more, slots, most)
        report(rows(path, given.kind, QUESTIONS[: given.questions], given.turns, peers), given.json)


if __name__ == "__main__":
    main()
