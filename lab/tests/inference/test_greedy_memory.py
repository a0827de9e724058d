"""A greedy text is written once: whoever asks the same again is told the same, and nothing else is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

import numpy as np

from podium.conductor import Checkpoint, Sampling, local_policy
from podium.conductor.loaded_model import Logits, TokenChunk
from podium.conductor.local_policy import LocalPolicy
from podium.types import Message
from podium_lab.inference.llama import KVCache
from podium_lab.inference.numpy_model import NumpyModel

Make = Callable[..., Path]

GREEDY = Sampling(max_tokens=12)


def asking(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=f"Question: {text}\nModels:\n0: ann: sums\nSteps: 5\nPlan:\n"),)


class CountedModel(NumpyModel):
    """A real model that counts how many texts it begins and how many tokens it is asked for, one in each pass."""

    sharing = None

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.texts = 0
        self.tokens = 0

    def start(self, capacity: int) -> KVCache:
        self.texts += 1
        return super().start(capacity)

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        self.tokens += len(chunks)
        return super().read(chunks)


async def test_a_greedy_policy_computes_a_repeated_prompt_once(
    make_checkpoint: Make,
) -> None:
    model = CountedModel(Checkpoint.read(make_checkpoint()))
    policy = LocalPolicy("tiny", model)
    first = await policy.complete(asking("3 + 4?"), GREEDY)
    assert (model.texts, model.tokens) == (1, 12)
    # A greedy text has nothing to do with the seed.
    again = await policy.complete(asking("3 + 4?"), Sampling(max_tokens=12, seed="another"))
    assert (model.texts, model.tokens) == (1, 12)
    assert first.text
    assert again == first
    assert first.usage.output_tokens == 12


async def test_greedy_cache_distinguishes_questions_and_max_tokens(make_checkpoint: Make) -> None:
    checkpoint = Checkpoint.read(make_checkpoint())
    model = CountedModel(checkpoint)
    policy = LocalPolicy("tiny", model)
    asked = [
        (asking("3 + 4?"), GREEDY),
        (asking("3 + 5?"), GREEDY),
        (asking("3 + 4?"), Sampling(max_tokens=5)),
        (asking("3 + 4?"), GREEDY),
    ]
    written = [await policy.complete(*one) for one in asked]
    assert model.texts == 3
    alone = [await LocalPolicy("tiny", NumpyModel(checkpoint)).complete(*one) for one in asked]
    assert written == alone
    assert len({(one.text, one.usage) for one in written}) == 3


async def test_texts_that_are_drawn_by_chance_are_drawn_anew(make_checkpoint: Make) -> None:
    model = CountedModel(Checkpoint.read(make_checkpoint()))
    policy = LocalPolicy("tiny", model)
    seeds = ["a", "b", "a"]
    drawn = [
        await policy.complete(asking("3 + 4?"), Sampling(temperature=1.0, max_tokens=12, seed=seed))
        for seed in seeds
    ]
    assert model.texts == len(seeds)
    assert drawn[0] == drawn[2] != drawn[1]
    # Neither does a greedy text take the place of one that is drawn, or the other way round.
    greedy = await policy.complete(asking("3 + 4?"), GREEDY)
    assert model.texts == len(seeds) + 1
    assert greedy.text not in {one.text for one in drawn}
    after = await policy.complete(asking("3 + 4?"), Sampling(temperature=1.0, max_tokens=12, seed="a"))
    assert after == drawn[0]


class HeldModel(CountedModel):
    """One that stops within its first text until it may go on."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.begun, self.may_go_on = Event(), Event()

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        self.begun.set()
        assert self.may_go_on.wait(30)
        return super().read(chunks)


async def test_a_text_that_was_cancelled_is_not_remembered(make_checkpoint: Make) -> None:
    checkpoint = Checkpoint.read(make_checkpoint())
    model = HeldModel(checkpoint)
    policy = LocalPolicy("tiny", model)
    task = asyncio.create_task(policy.complete(asking("3 + 4?"), GREEDY))
    assert await asyncio.to_thread(model.begun.wait, 30)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    model.may_go_on.set()
    whole = await policy.complete(asking("3 + 4?"), GREEDY)
    assert model.texts == 2
    assert 12 <= model.tokens < 24, "the first was cut"
    assert whole == await LocalPolicy("tiny", NumpyModel(checkpoint)).complete(asking("3 + 4?"), GREEDY)


class DigitCodec:
    """A token for each digit, behind one that begins the text."""

    def encode(self, messages: Sequence[Message]) -> list[int]:
        return [1, *self.encode_completion(messages[0].content)]

    def encode_completion(self, text: str) -> list[int]:
        return [2 + int(digit) for digit in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f"{token - 2}" for token in tokens)


class EchoModel:
    """Says the token that it was asked with, once; counts how often it has to."""

    codec = DigitCodec()
    context = 1000
    eos_token_ids = frozenset({0})
    batch = 1
    sharing = None

    def __init__(self) -> None:
        self.texts = 0

    def start(self, capacity: int) -> None:
        self.texts += 1

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        last = [(chunk.tokens[-1] if len(chunk.tokens) > 1 else 0,) for chunk in chunks]
        return [np.eye(12, dtype=np.float32)[tokens,] for tokens in last]


async def test_greedy_cache_drops_old_completions_above_its_size() -> None:
    model = EchoModel()
    policy = LocalPolicy("echo", model)
    most = local_policy._CACHED_COMPLETIONS

    async def ask(number: int) -> str:
        text = f"{number}"
        completion = await policy.complete((Message(role="user", content=text),), Sampling())
        assert completion.text == text[-1]
        return completion.text

    for number in range(most):
        await ask(number)
    assert model.texts == most
    for number in (0, most // 2, most - 1):
        await ask(number)
    assert model.texts == most, "all are remembered"
    await ask(most)
    await ask(most)
    assert model.texts == most + 1
    for number in range(most):
        await ask(number)
    forgotten = model.texts - most - 1
    assert forgotten > 0, "one more has taken the place of others"
