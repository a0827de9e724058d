from __future__ import annotations

from typing import Any

import openai
import pytest
from chat_model import chat_model
from openai import OpenAI
from running_server import Serve

from podium.workers.pool import Pool


def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_a_prompt_is_completed_whole_and_streamed(serve: Serve) -> None:
    with chat_model("Six| by| seven") as model:
        asking = client(serve(Pool([model.worker()]), planner="single:wren"))
        whole = asking.completions.create(model="podium", prompt="What is 6 x 7?", max_tokens=9)
        stream = asking.completions.create(
            model="wren", prompt=["What is 6 x 7?"], stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
    assert (whole.object, whole.choices[0].text) == ("text_completion", "Six by seven")
    assert whole.choices[0].finish_reason == "stop"
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == "Six by seven"
    assert chunks[-1].usage is not None
    assert model.bodies[0]["max_tokens"] == 9
    assert model.bodies[1]["messages"] == [{"role": "user", "content": "What is 6 x 7?"}]


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"echo": True}, "echo"),
        ({"suffix": "x"}, "suffix"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"n": 9}, "n"),
    ],
)
def test_what_only_older_models_do_is_refused(serve: Serve, changed: dict[str, Any], param: str) -> None:
    body = {"model": "podium", "prompt": "x"} | changed
    with pytest.raises(openai.BadRequestError) as refused:
        client(serve(planner="single:ada")).post("/completions", body=body, cast_to=object)
    assert refused.value.param == param


@pytest.mark.parametrize("name", ["podium", "wren"])
def test_what_has_no_effect_is_named(serve: Serve, name: str) -> None:
    with chat_model("42") as model:
        asking = client(serve(Pool([model.worker()]), planner="single:wren"))
        made = asking.completions.with_raw_response.create(model=name, prompt="What is 6 x 7?", best_of=4)
    assert made.headers["x-podium-ignored"] == "best_of"


def test_every_reply_has_a_request_id_and_its_cost(serve: Serve) -> None:
    with chat_model("42") as model:
        asking = client(serve(Pool([model.worker()]), planner="single:wren"))
        reply: Any = asking.chat.completions.create(
            model="podium", messages=[{"role": "user", "content": "What is 6 x 7?"}]
        )
        with pytest.raises(openai.NotFoundError) as refused:
            asking.models.retrieve("nobody")
    assert len({reply._request_id, refused.value.request_id, None}) == 3
    assert reply.usage.cost == reply.podium["cost_usd"] > 0


def test_no_reasoning_follows_the_first_text_of_a_stream(serve: Serve) -> None:
    with chat_model("Six| by| seven") as model:
        asking = client(serve(Pool([model.worker()]), planner="single:wren"))
        stream = asking.chat.completions.create(
            model="podium", messages=[{"role": "user", "content": "What is 6 x 7?"}], stream=True
        )
        chunks: list[Any] = list(stream)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    first = next(number for number, delta in enumerate(deltas) if delta.content)
    assert any(getattr(delta, "reasoning_content", None) for delta in deltas[:first])
    assert not any(getattr(delta, "reasoning_content", None) for delta in deltas[first:])
    assert "step_ended" in [chunk.podium["event"] for chunk in chunks[first:-1] if hasattr(chunk, "podium")]
