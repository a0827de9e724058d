"""The sentence encoder: what it asks an endpoint, what it makes of the vectors, and what it refuses."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from embedding_server import EmbeddingServer, embedding_server, reply
from podium.baselines.encoder import Encoded, Encoder, open_encoder
from podium.baselines.predictors import Method
from podium.baselines.routers import learn_router
from podium.errors import ConfigError, WorkerError
from podium.types import Limits

KEY = "sk-hush-hush-0123456789"


def lengths(texts: list[str]) -> dict[str, Any]:
    return reply([[3 * len(text), 4 * len(text)] for text in texts])


async def encode(url: str, texts: list[str], **options: Any) -> Encoded:
    encoder = open_encoder(url, "m", **options)
    try:
        return await encoder.encode(texts)
    finally:
        await encoder.close()


async def failure(answer: Callable[[list[str]], Any], texts: list[str]) -> str:
    with embedding_server(answer) as server, pytest.raises(WorkerError) as failed:
        await encode(server.url, texts)
    assert str(failed.value).startswith(server.url)
    return str(failed.value).removeprefix(f"{server.url}: ")


async def test_each_text_is_sent_once_in_batches_and_its_vector_has_length_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ENCODER_KEY", KEY)
    texts = [f"text {number}" for number in range(130)]
    with embedding_server(lengths) as server:
        encoded = await encode(f"{server.url}/embeddings", texts + texts[:7], key_env="ENCODER_KEY")
    assert server.texts == texts
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 2]
    assert {body["model"] for body in server.bodies} == {encoded.model} == {"m"}
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert list(encoded.vectors) == texts
    assert all(np.allclose(vector, [0.6, 0.8]) for vector in encoded.vectors.values())


async def test_vectors_belong_to_the_text_whose_number_they_have() -> None:
    def turned(texts: list[str]) -> dict[str, Any]:
        body = reply([[len(text), 0.0] if len(text) > 1 else [0.0, 1.0] for text in texts])
        return body | {"data": body["data"][::-1]}

    with embedding_server(turned) as server:
        encoded = await encode(server.url, ["a", "bb"])
    assert encoded.vectors["a"].tolist() == [0.0, 1.0]
    assert encoded.vectors["bb"].tolist() == [1.0, 0.0]


async def test_a_retryable_failure_is_retried() -> None:
    server: EmbeddingServer
    with embedding_server(lambda texts: 503 if len(server.bodies) < 2 else lengths(texts)) as server:
        encoded = await encode(server.url, ["a"])
    assert len(server.bodies) == 2
    assert "a" in encoded.vectors


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda texts: 400, "status 400: Not today."),
        (lambda texts: 401, "status 401: Not today (is the key right?)."),
        (lambda texts: 404, "status 404: Not today (are base_url and model right?)."),
        (lambda texts: {"error": {"message": "No such model.", "code": "model_not_found"}}, "it reports"),
        (lambda texts: {"choices": []}, "the reply has no list of vectors (is this an embedding model?)."),
        (lambda texts: [1], "the reply is no JSON object."),
        (lambda texts: reply([[1.0]]), "it gave 1 vectors for 2 texts."),
        (lambda texts: reply([[1.0], [1.0, 2.0]]), "its vectors have different lengths, from 1 to 2."),
        (lambda texts: reply([[1.0], "AACAPw=="]), "a vector is no list of finite numbers."),
        (lambda texts: reply([[1.0], [math.nan]]), "a vector is no list of finite numbers."),
        (lambda texts: reply([[1.0], []]), "a vector is no list of finite numbers."),
        (lambda texts: reply([[1.0], [0.0]]), "m returned a vector that is zero or not finite."),
        (
            lambda texts: {"data": [{"index": 1, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
            "its vectors are not numbered from 0 on.",
        ),
    ],
)
async def test_what_cannot_be_used_is_one_clear_sentence(
    answer: Callable[[list[str]], Any], sentence: str
) -> None:
    assert (await failure(answer, ["a", "b"])).startswith(sentence)


async def test_vectors_of_two_batches_are_of_one_size() -> None:
    texts = [str(number) for number in range(65)]
    assert await failure(lambda asked: reply([[1.0] * len(asked)] * len(asked)), texts) == (
        "m returned vectors of 64 and then of 1 numbers."
    )


async def test_an_endpoint_that_is_not_there_is_retried_and_then_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    encoder = Encoder(open_encoder(url, "m")._client, "m", limits=Limits(retries=1))
    with pytest.raises(WorkerError, match="the connection failed") as failed:
        await encoder.encode(["a"])
    assert failed.value.kind == "connection"
    await encoder.close()


def test_an_address_or_key_that_cannot_be_used_is_named_as_it_was_given() -> None:
    with pytest.raises(ConfigError, match=r"^--url: base_url 'nowhere' is not an address"):
        open_encoder("nowhere", "m", option_name=lambda key: "--url")
    with pytest.raises(ConfigError, match=r"^--key: the environment variable NO_KEY is not set"):
        open_encoder("http://x/v1", "m", key_env="NO_KEY", option_name=lambda key: "--key")


@pytest.mark.parametrize("method", ["ridge", "neighbours"])
async def test_a_router_learns_over_an_encoder_what_n_grams_do_not_tell(method: Method) -> None:
    known, held_out = ([f"Is {number} right?" for number in part] for part in (range(40), range(100, 140)))

    def even(text: str) -> float:
        return float(int(text.split()[1]) % 2 == 0)

    scores = np.array([[even(text), 1 - even(text)] for text in known])
    with embedding_server(
        lambda texts: reply([[9.0, even(text), 1 - even(text)] for text in texts])
    ) as server:
        encoded = await encode(server.url, [*known, *held_out])
    choose = learn_router(method, known, scores, ("ada", "bob"), vectors=encoded.of)
    assert [choose(text) for text in held_out] == ["ada", "bob"] * 20
