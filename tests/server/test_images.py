"""A message of images alone is a question, and what is neither text nor image is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chat_model import ChatModel, chat_model
from podium.workers.pool import Pool
from running_server import Serve

DATA = "data:image/png;base64,iVBORw0KGgo="
CHAT = {"type": "image_url", "image_url": {"url": DATA}}
RESPONSES = {"type": "input_image", "image_url": DATA}
ANTHROPIC = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}


def chat(*content: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": list(content)}]}


def responses(*content: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/responses", {"input": [{"role": "user", "content": list(content)}]}


def messages(*content: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": list(content)}]}


APIS: dict[str, tuple[Callable[..., tuple[str, dict[str, Any]]], str, Any]] = {
    "chat completions": (chat, "text", CHAT),
    "responses": (responses, "input_text", RESPONSES),
    "messages": (messages, "text", ANTHROPIC),
}


@pytest.fixture
def model() -> Iterator[ChatModel]:
    with chat_model("A cat.") as opened:
        yield opened


@pytest.fixture
def url(serve: Serve, model: ChatModel, tmp_path: Path) -> str:
    pool = Pool([model.worker(sees=True)])
    return serve(pool, planner="single:wren", store=tmp_path / "traces.sqlite")


def texts(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, None), (1, ""), (1, " \n"), (2, None)],
    ids=["no text", "an empty one", "a blank one", "two"],
)
@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_message_of_images_alone_is_a_question(
    url: str, model: ChatModel, api: Any, count: int, words: str | None
) -> None:
    make, kind, image = api
    path, body = make(*([] if words is None else [{"type": kind, "text": words}]), *[image] * count)
    for asked in ("podium", "wren"):
        reply = httpx.post(url + path, json={"model": asked, **body}, timeout=20)
        assert reply.status_code == 200, reply.text
        content = model.bodies[-1]["messages"][-1]["content"]
        assert sum(part["type"] == "image_url" for part in content) == count
        assert ("image was" if count == 1 else "2 images were") in texts(content)


def test_planner_is_told_that_the_question_is_an_image(url: str) -> None:
    path, body = chat(CHAT)
    reply = httpx.post(url + path, json={"model": "podium", **body}, timeout=20)
    trace = httpx.get(f"{url}/api/traces/{reply.json()['podium']['trace_id']}").json()
    assert "image" in trace["question"]["text"]
    assert trace["question"]["images"] == [DATA]


@pytest.mark.parametrize("asked", ["podium", "wren"])
def test_image_without_text_in_an_earlier_message_gets_a_text(url: str, model: ChatModel, asked: str) -> None:
    path, body = chat(CHAT)
    body["messages"] += [
        {"role": "assistant", "content": "A cat."},
        {"role": "user", "content": "What colour?"},
    ]
    assert httpx.post(url + path, json={"model": asked, **body}, timeout=20).status_code == 200
    earlier = model.bodies[-1]["messages"][0]["content"]
    assert "image" in texts(earlier)
    assert [part["type"] for part in earlier] == ["text", "image_url"]


@pytest.mark.parametrize("api", APIS)
def test_question_without_text_and_image_is_refused(url: str, api: str) -> None:
    make, kind, _ = APIS[api]
    path, body = make({"type": kind, "text": ""})
    reply = httpx.post(url + path, json={"model": "podium", **body}, timeout=20)
    assert (reply.status_code, "empty" in reply.text) == (400, True)


OTHERS = {
    "speech": chat({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
    "a file": chat({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:;base64,JVBE"}}),
    "a video, beside a text": chat(
        {"type": "text", "text": "What is this?"}, {"type": "video_url", "video_url": {"url": "https://a.b"}}
    ),
    "speech, as a response has it": responses({"type": "input_audio", "input_audio": {"data": "UklG"}}),
}


@pytest.mark.parametrize(("path", "body"), OTHERS.values(), ids=OTHERS)
def test_speech_and_files_are_refused_in_words(url: str, path: str, body: dict[str, Any]) -> None:
    reply = httpx.post(url + path, json={"model": "podium", **body}, timeout=20)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "invalid_value"), error
    assert "workers read texts and images" in error["message"]
