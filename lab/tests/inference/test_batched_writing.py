"""Completions that are written together, on a shared beginning, and on drafts are those that are written alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from podium.conductor import Checkpoint, Completion, Sampling, build_prompt, open_policy
from podium.conductor.loaded_model import Logits, TokenChunk
from podium.conductor.local_policy import LocalPolicy, sample_token
from podium.errors import UsageError
from podium.planners.planner import PlanRequest
from podium.types import Message
from podium_lab.inference.llama import KVCache, Llama, Shape, read_weights
from podium_lab.inference.numpy_model import NumpyModel
from scripted_team import Sums, open_team

Make = Callable[..., Path]


def asking(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=text),)


class CountedModel(NumpyModel):
    """Counts passes, and the tokens that they read."""

    passes = 0
    tokens = 0
    copied = 0

    def copy(self, cache: KVCache, length: int, capacity: int) -> KVCache:
        self.copied += length
        return super().copy(cache, length, capacity)

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        self.passes += 1
        self.tokens += sum(len(chunk.tokens) for chunk in chunks)
        return super().read(chunks)


async def together(
    policy: LocalPolicy, prompts: Sequence[tuple[Message, ...]], samplings: Sequence[Sampling]
) -> list[Completion]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(policy.complete(prompt, sampling))
            for prompt, sampling in zip(prompts, samplings, strict=True)
        ]
    return [task.result() for task in tasks]


def _token_by_token(checkpoint: Checkpoint) -> Callable[[tuple[Message, ...], Sampling], str]:
    """The plain way: one text, one token a pass, nothing shared and nothing drafted."""
    llama = Llama(Shape.of(checkpoint.config), read_weights(checkpoint.path / "model.safetensors"))
    model = NumpyModel(checkpoint)

    def write(messages: tuple[Message, ...], sampling: Sampling) -> str:
        rng, cache = random.Random(f"policy/{sampling.seed}"), llama.start(model.context)
        news, tokens = model.codec.encode(messages), list[int]()
        while len(tokens) < 384 and not set(tokens) & model.eos_token_ids:
            tokens.append(sample_token(llama.logits(llama.read(news, cache)[-1]), sampling.temperature, rng))
            news = tokens[-1:]
        return model.codec.decode([token for token in tokens if token not in model.eos_token_ids])

    return write


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", ["world-conductor", "world-warmstart"])
async def test_batched_plans_of_shipped_policies_equal_unbatched_generation(
    name: str, temperature: float
) -> None:
    shipped = Checkpoint.read(name)  # test_guide.py has what the guide does.
    checkpoint = replace(shipped, prompt=shipped.prompt.model_copy(update={"guide": ""}))
    profiles = open_team().profiles
    requests = [PlanRequest(task.question, profiles) for task in Sums("validation", size=20, seed=5)]
    prompts = [build_prompt(request, checkpoint.prompt) for request in requests]
    samplings = [Sampling(temperature=temperature, seed=f"{number}") for number in range(len(prompts))]
    policy = open_policy(checkpoint)
    assert isinstance(policy, LocalPolicy)
    write = _token_by_token(checkpoint)
    plain = [write(prompt, sampling) for prompt, sampling in zip(prompts, samplings, strict=True)]
    assert [written.text for written in await together(policy, prompts, samplings)] == plain
    one_by_one = [
        await policy.complete(prompt, sampling) for prompt, sampling in zip(prompts, samplings, strict=True)
    ]
    assert [written.text for written in one_by_one] == plain


@pytest.mark.parametrize("temperature", [0.0, 0.7])
async def test_batched_completions_of_a_tiny_model_equal_single_completions(
    make_checkpoint: Make, temperature: float
) -> None:
    checkpoint = Checkpoint.read(make_checkpoint("qwen2"))
    prompts = [asking("Question: " + "ab " * (number % 20) + f"{number}") for number in range(200)]
    samplings = [
        Sampling(temperature=temperature, seed=f"{number}", max_tokens=1 + number % 23)
        for number in range(200)
    ]
    alone = [
        await LocalPolicy("tiny", NumpyModel(checkpoint)).complete(prompt, sampling)
        for prompt, sampling in zip(prompts, samplings, strict=True)
    ]
    assert await together(LocalPolicy("tiny", NumpyModel(checkpoint)), prompts, samplings) == alone


async def test_concurrent_completions_share_forward_passes(make_checkpoint: Make) -> None:
    all_wanted = Event()

    class PatientModel(CountedModel):
        def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
            all_wanted.wait(10)
            return super().read(chunks)

    model = PatientModel(Checkpoint.read(make_checkpoint(eos_token_id=None)))
    policy = LocalPolicy("tiny", model)
    texts = asyncio.gather(
        *(policy.complete(asking(f"{number} is a question"), Sampling(max_tokens=20)) for number in range(16))
    )
    await asyncio.sleep(0)
    all_wanted.set()
    await texts
    assert model.passes <= 80, "and not 320"


async def test_the_common_beginning_of_prompts_is_read_once(make_checkpoint: Make) -> None:
    model = CountedModel(Checkpoint.read(make_checkpoint(eos_token_id=None)))
    beginning = "".join(f"{number} and " for number in range(30))
    prompts = [asking(f"{beginning}{level}") for level in range(8)]
    shared = len(model.codec.encode(asking(beginning)))
    policy = LocalPolicy("tiny", model)
    await together(policy, prompts, [Sampling(max_tokens=1)] * 8)
    assert model.copied >= 7 * (shared - 2)
    assert model.tokens < 2 * shared
    before = model.tokens
    await policy.complete(asking(f"{beginning}later"), Sampling(max_tokens=1))
    assert model.tokens < before + shared, "it is kept for a while"


async def test_repeated_prompt_reuses_its_earlier_completion_as_a_draft(make_checkpoint: Make) -> None:
    model = CountedModel(Checkpoint.read(make_checkpoint(eos_token_id=None)))
    policy = LocalPolicy("tiny", model)
    first = await policy.complete(asking("The same"), Sampling(max_tokens=60))
    passes = model.passes
    longer = await policy.complete(asking("The same"), Sampling(max_tokens=61))
    assert longer.text.startswith(first.text)
    assert model.passes - passes < passes / 2


async def test_refused_prompt_does_not_stop_concurrent_completions(make_checkpoint: Make) -> None:
    policy = LocalPolicy("tiny", NumpyModel(Checkpoint.read(make_checkpoint())))
    fine, refused, fine_too = await asyncio.gather(
        policy.complete(asking("a"), Sampling(max_tokens=3)),
        policy.complete(asking("word " * 300), Sampling(max_tokens=3)),
        policy.complete(asking("b"), Sampling(max_tokens=3)),
        return_exceptions=True,
    )
    assert isinstance(refused, UsageError)
    assert isinstance(fine, Completion)
    assert isinstance(fine_too, Completion)


async def test_a_fault_of_the_model_reaches_every_caller_and_the_next_is_served(
    make_checkpoint: Make,
) -> None:
    class Faulty(NumpyModel):
        broken = True

        def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
            if self.broken:
                raise MemoryError
            return super().read(chunks)

    model = Faulty(Checkpoint.read(make_checkpoint()))
    policy = LocalPolicy("tiny", model)
    results = await asyncio.gather(
        *(policy.complete(asking(f"{number}"), Sampling()) for number in range(5)), return_exceptions=True
    )
    assert [type(result) for result in results] == [MemoryError] * 5
    model.broken = False
    assert (await policy.complete(asking("a"), Sampling(max_tokens=3))).text
