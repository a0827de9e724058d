"""Local policies: the same text from every loaded model, named randomness, safe together, cancelled at once."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from podium.calls import CallContext
from podium.conductor import Checkpoint, Sampling, open_policy
from podium.conductor.loaded_model import Logits, TokenChunk
from podium.conductor.local_policy import LocalPolicy, sample_token
from podium.conductor.torch_model import TorchModel
from podium.errors import CheckpointError, UsageError
from podium.spending import Ledger
from podium.types import Budget, Message, Spent
from tiny_models import CHAT, CHAT_WITHOUT_SYSTEM

Make = Callable[..., Path]

PROMPT = (Message(role="user", content="Question: 3 + 4?\nModels:\n0: ann: sums\nSteps: 5\nPlan:\n"),)


def _transformers_text(folder: Path, messages: tuple[Message, ...], tokens: int) -> str:
    """What transformers writes by itself, greedily."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if tokenizer.chat_template:
        chat = [message.model_dump() for message in messages]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    else:
        text = f"<s>{messages[0].content}"
    prompt = tokenizer(text, add_special_tokens=False, return_tensors="pt")
    with torch.inference_mode():
        written = model.generate(**prompt, max_new_tokens=tokens, do_sample=False)
    text = tokenizer.decode(written[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("kind", "dtype", "chat"),
    [
        ("llama", torch.float32, None),
        ("llama", torch.bfloat16, None),
        ("qwen2", torch.float32, None),
        ("gpt2", torch.float32, None),
        ("llama", torch.float32, CHAT),
    ],
)
async def test_greedy_text_is_that_of_transformers(
    make_checkpoint: Make, kind: str, dtype: torch.dtype, chat: str | None
) -> None:
    folder = make_checkpoint(kind, dtype=dtype, chat=chat)
    completion = await open_policy(folder).complete(PROMPT, Sampling(max_tokens=60))
    assert completion.text == _transformers_text(folder, PROMPT, 60)
    assert completion.text


async def test_same_seed_gives_the_same_sampled_completion(make_checkpoint: Make) -> None:
    policy = open_policy(make_checkpoint())
    seeds = ["a", "b", "a", "c"]
    texts = [
        (await policy.complete(PROMPT, Sampling(temperature=1.0, max_tokens=30, seed=seed))).text
        for seed in seeds
    ]
    assert texts[0] == texts[2]
    assert len(set(texts)) == 3


async def test_concurrent_completions_equal_single_completions(make_checkpoint: Make) -> None:
    policy = open_policy(make_checkpoint())
    prompts = [(Message(role="user", content=f"Question: {n} {'x' * n}"),) for n in range(12)]
    sampling = Sampling(temperature=1.0, max_tokens=40)
    alone = [await policy.complete(prompt, sampling) for prompt in prompts]
    async with asyncio.TaskGroup() as group:
        together = [group.create_task(policy.complete(prompt, sampling)) for prompt in prompts]
    assert [task.result() for task in together] == alone


@pytest.mark.parametrize(("kind", "temperature"), [("llama", 0.0), ("qwen2", 1.0), ("gpt2", 1.0)])
async def test_texts_share_passes_of_transformers(
    make_checkpoint: Make, kind: str, temperature: float
) -> None:
    model = TorchModel(Checkpoint.read(make_checkpoint(kind, chat=CHAT)))
    prompts = [(Message(role="user", content=f"Question: {n} {'x' * 3 * n}"),) for n in range(6)]
    samplings = [
        Sampling(temperature=temperature, max_tokens=6 + 3 * n, seed=str(n)) for n in range(len(prompts))
    ]
    given = list(zip(prompts, samplings, strict=True))
    alone = [await LocalPolicy("tiny", model).complete(*each) for each in given]
    policy, passes = LocalPolicy("tiny", model), []

    def count(module: torch.nn.Module, read: object, written: object) -> None:
        if "logits" in getattr(written, "keys", list)():
            passes.append(len(written.logits))

    with torch.nn.modules.module.register_module_forward_hook(count):
        assert await asyncio.gather(*(policy.complete(*each) for each in given)) == alone
    assert len(passes) <= max(one.usage.output_tokens for one in alone) + 2 * len(given)
    assert max(passes) == len(given)


async def test_tokens_are_counted_and_cost_nothing(make_checkpoint: Make) -> None:
    folder = make_checkpoint()
    ledger = Ledger(Budget())
    completion = await open_policy(folder).complete(
        PROMPT, Sampling(max_tokens=7), replace(CallContext.unlimited(), ledger=ledger)
    )
    assert ledger.spent == Spent(completion.usage)
    prompt = Checkpoint.read(folder).tokenizer().encode(PROMPT[0].content).ids
    assert completion.usage.input_tokens == len(prompt) + 1  # <s>
    assert completion.usage.output_tokens == 7
    assert completion.truncated
    assert not completion.usage.estimated


async def test_end_token_written_in_a_question_is_plain_text(make_checkpoint: Make) -> None:
    for kind in ("llama", "gpt2"):
        model = TorchModel(Checkpoint.read(make_checkpoint(kind, name=kind)))
        tokens = model.codec.encode([Message(role="user", content="a </s> <s> b")])
        assert tokens[0] == 1
        assert not {1, 2} & set(tokens[1:])
        assert model.codec.decode(tokens[1:]) == "a </s> <s> b"


def test_a_template_without_a_system_message_gets_it_in_the_users_first(make_checkpoint: Make) -> None:
    model = TorchModel(Checkpoint.read(make_checkpoint(chat=CHAT_WITHOUT_SYSTEM)))
    system, user = Message(role="system", content="Lead."), Message(role="user", content="What?")
    assert model.codec.decode(model.codec.encode([system, user])) == "<|user|>Lead.\n\nWhat?<|assistant|>"


def test_a_model_larger_than_its_weights_is_refused_before_it_takes_memory(make_checkpoint: Make) -> None:
    folder = make_checkpoint()
    (folder / "config.json").write_text('{"model_type": "llama"}')  # The sizes of LLaMA 7B.
    with pytest.raises(CheckpointError, match=r"6,738,415,616 parameters, but its weights are"):
        TorchModel(Checkpoint.read(folder))


class NumberCodec:
    """A number for each token."""

    def encode(self, messages: object) -> list[int]:
        return [1, 7, 8]

    def encode_completion(self, text: str) -> list[int]:
        return [int(number) for number in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


class Scripted:
    """A model that wants these tokens, one after the other, and keeps what it was given to read."""

    codec = NumberCodec()
    context = 1_000_000
    eos_token_ids = frozenset({2, 3})
    batch = 1
    sharing = None

    def __init__(self, wanted: Sequence[int] = (), pause: float = 0.0) -> None:
        self.wanted = iter(wanted)
        self.pause = pause
        self.seen: list[list[int]] = []

    def start(self, capacity: int) -> None: ...

    def read(self, chunks: Sequence[TokenChunk]) -> list[Logits]:
        time.sleep(self.pause)
        self.seen += [list(chunk.tokens) for chunk in chunks]
        return [np.eye(10, dtype=np.float32)[[next(self.wanted, 0)]] for _ in chunks]


@pytest.mark.parametrize(
    ("wanted", "limit", "written", "text"),
    [
        ([4, 5, 2, 6], 10, 3, "4 5"),
        ([4, 5, 6], 2, 2, "4 5"),
        ([2, 4], 10, 1, ""),
        ([4, 3, 4], 10, 2, "4"),
    ],
)
async def test_writing_stops_at_an_end_or_at_the_limit(
    wanted: list[int], limit: int, written: int, text: str
) -> None:
    completion = await LocalPolicy("scripted", Scripted(wanted)).complete(PROMPT, Sampling(max_tokens=limit))
    assert (completion.usage.output_tokens, completion.text) == (written, text)


async def test_a_prompt_is_read_once_and_then_token_by_token() -> None:
    model = Scripted([4, 5, 6])
    await LocalPolicy("scripted", model).complete(PROMPT, Sampling(max_tokens=3))
    assert model.seen == [[1, 7, 8], [4], [5]]


def test_draws_follow_the_softmax() -> None:
    logits = np.array([np.log(0.1), -np.inf, np.log(0.6), np.log(0.3)], np.float32)
    rng = random.Random("draws")
    counts = np.bincount([sample_token(logits, 1.0, rng) for _ in range(4000)], minlength=4) / 4000
    assert counts[1] == 0
    np.testing.assert_allclose(counts, [0.1, 0, 0.6, 0.3], atol=0.04)
    sharp = np.bincount([sample_token(logits, 0.25, rng) for _ in range(1000)], minlength=4) / 1000
    np.testing.assert_allclose(sharp, np.array([0.0001, 0, 0.1296, 0.0081]) / 0.1378, atol=0.04)


async def test_a_prompt_too_long_is_a_clear_refusal(make_checkpoint: Make) -> None:
    policy = open_policy(make_checkpoint())
    with pytest.raises(
        UsageError, match=r"makes a prompt of \d+ tokens, but tiny reads at most 255 tokens; ask"
    ):
        await policy.complete((Message(role="user", content="word " * 300),), Sampling())


async def test_a_prompt_that_cannot_fit_is_not_cut_into_tokens(make_checkpoint: Make) -> None:
    policy = open_policy(make_checkpoint())
    with pytest.raises(
        UsageError, match=r"makes a prompt of 10000000 characters, but tiny reads at most 255 tokens;"
    ):
        await policy.complete((Message(role="user", content="word " * 2_000_000),), Sampling())


async def test_a_completion_ends_where_the_context_does(make_checkpoint: Make) -> None:
    policy = open_policy(make_checkpoint(eos_token_id=None))
    completion = await policy.complete((Message(role="user", content="z" * 200),), Sampling())
    assert completion.usage.tokens == 256


async def test_cancelling_stops_the_thread() -> None:
    model = Scripted(pause=0.001)
    policy = LocalPolicy("endless", model)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await policy.complete(PROMPT, Sampling(max_tokens=100_000))
    await asyncio.sleep(0.05)
    after = len(model.seen)
    await asyncio.sleep(0.05)
    assert 0 < after == len(model.seen)


def test_checkpoint_that_transformers_cannot_load_gives_one_sentence(make_checkpoint: Make) -> None:
    folder = make_checkpoint("gpt2")
    (folder / "config.json").write_text('{"model_type": "no_such_model"}')
    with pytest.raises(CheckpointError, match="transformers cannot load"):
        open_policy(folder)
