"""A model in NumPy reads and writes as transformers does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from podium.conductor import Checkpoint, Sampling
from podium.conductor.local_policy import LocalPolicy
from podium.conductor.torch_model import TorchModel
from podium.types import Message
from podium_lab.inference.numpy_model import NumpyModel

Make = Callable[..., Path]

PROMPT = (Message(role="user", content="Question: 3 + 4?\nModels:\n0: ann: sums\nSteps: 5\nPlan:\n"),)


async def test_both_models_draw_the_same_text(make_checkpoint: Make) -> None:
    checkpoint = Checkpoint.read(make_checkpoint("qwen2", eos_token_id=None))
    sampling = Sampling(temperature=0.7, seed="x", max_tokens=40)
    texts = [
        await LocalPolicy("tiny", model).complete(PROMPT, sampling)
        for model in (NumpyModel(checkpoint), TorchModel(checkpoint))
    ]
    assert texts[0] == texts[1]
    assert texts[0].text


def test_numpy_codec_treats_an_end_token_in_a_question_as_plain_text(make_checkpoint: Make) -> None:
    model = NumpyModel(Checkpoint.read(make_checkpoint("llama")))
    tokens = model.codec.encode([Message(role="user", content="a </s> <s> b")])
    assert tokens[0] == 1
    assert not {1, 2} & set(tokens[1:])
    assert model.codec.decode(tokens[1:]) == "a </s> <s> b"
