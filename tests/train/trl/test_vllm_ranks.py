"""Ranks that share a vLLM server: TRL's own code hands each completion to the rank and the sample that asked for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from trl.generation import vllm_generation

from letter_codec import LetterCodec
from podium.scoring import RolloutRequest, Score
from podium.train.ranks import Ranks as OneRank
from podium.train.rollouts import RolloutCollector, RolloutSample
from podium.train.schedule import ScheduledGroup
from podium.train.trl.sampler import TRLSampler
from podium.types import Message

END, ROOM = 1, 10


class Echoed:
    """A scoring whose prompt is the task's id.

    A plan that says another earns nothing, nor does one without its end that is not said to be cut off.
    """

    async def prompt(self, request: RolloutRequest) -> tuple[Message, ...] | None:
        return (Message(role="user", content=request.task),)

    async def score(self, request: RolloutRequest) -> Score:
        plan = request.plans[-1]
        return Score(reward=float(plan == request.task and request.truncated != plan.endswith(chr(END))))


class Server:
    """What TRL asks for completions, in place of vLLM: each repeats its prompt."""

    def generate(self, *, prompts: list[list[int]], n: int, **_: Any) -> dict[str, Any]:
        completions = [prompt for prompt in prompts for _ in range(n)]
        logprobs = [[[0.0] for _ in completion] for completion in completions]
        return {"prompt_ids": prompts, "completion_ids": completions, "logprobs": logprobs}


class Ranks:
    """Two ranks as two threads, and the two collective calls that TRL makes."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=30)
        self._own = threading.local()
        self._given: list[list[Any]] = [[], []]
        self._told: list[Any] = []

    def run(self, work: Callable[[int], None]) -> None:
        def on(rank: int) -> None:
            self._own.rank = rank
            work(rank)

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(on, range(2)))

    def gather(self, objects: list[Any]) -> list[Any]:
        self._given[self._own.rank] = objects
        self._barrier.wait()
        gathered = [*self._given[0], *self._given[1]]
        self._barrier.wait()
        return gathered

    def broadcast(self, objects: list[Any], from_process: int) -> None:
        if self._own.rank == from_process:
            self._told = list(objects)
        self._barrier.wait()
        objects[:] = self._told
        self._barrier.wait()


def _trainer(rank: int) -> Any:
    accelerator = SimpleNamespace(num_processes=2, process_index=rank, is_main_process=rank == 0)
    engine = vllm_generation.VLLMGeneration.__new__(vllm_generation.VLLMGeneration)
    engine.__dict__.update(
        {"mode": "server", "accelerator": accelerator, "vllm_client": Server(), "tensor_parallel_size": 1},
        **dict.fromkeys(("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "logprobs"), 1),
        **dict.fromkeys(("structured_outputs_regex", "generation_kwargs")),
        max_completion_length=4,
    )

    def single_turn(prompts: Any, images: Any, fields: Any, same: int) -> tuple[Any, Any]:
        _, completions, logprobs, _ = engine.generate(prompts, images, same)
        return completions, [[one[0] for one in row] for row in logprobs]

    return SimpleNamespace(
        accelerator=accelerator, use_vllm=True, vllm_generation=engine, num_generations=2,
        max_completion_length=4, eos_token_ids=[END], processing_class=SimpleNamespace(eos_token_id=END),
        _generate_single_turn=single_turn,
    )  # fmt: skip


@pytest.mark.parametrize(
    "tasks",
    [
        (("long" * ROOM, "long" * ROOM), ("a", "b")),
        (("a", "long" * ROOM), ("b", "c")),
        (("a", "b"), ("long" * ROOM, "c")),
        (("a", "ended" + chr(END)), (f"b{chr(END)}", "c")),
    ],
)
async def test_rank_with_too_long_prompts_takes_no_completion_of_another_rank(
    tasks: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Ranks()
    monkeypatch.setattr(vllm_generation, "gather_object", ranks.gather)
    monkeypatch.setattr(vllm_generation, "broadcast_object_list", ranks.broadcast)
    loop = asyncio.get_running_loop()
    groups = [
        [
            RolloutSample(ScheduledGroup(0, place, 0, task, f"{rank}/{place}"), n)
            for place, task in enumerate(own)
            for n in (0, 1)
        ]
        for rank, own in enumerate(tasks)
    ]

    completed: dict[int, list[RolloutSample]] = {}

    def work(rank: int) -> None:
        stop = threading.Event()
        rollouts = RolloutCollector(
            Echoed(),
            loop,
            LetterCodec(),
            rounds=1,
            discount=0.0,
            max_prompt_tokens=ROOM,
            ranks=OneRank(),
            stop=stop,
        )
        completed[rank], _ = rollouts.run(groups[rank], TRLSampler(_trainer(rank), stop), max_samples=4)

    await asyncio.to_thread(ranks.run, work)

    for sample in chain.from_iterable(completed.values()):
        reward = None if sample.score is None else sample.score.reward
        assert reward == (None if sample.too_long else 1.0), sample.group.task
