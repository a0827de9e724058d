"""LiteLLM: as an OpenAI endpoint, and as an Anthropic one (PODIUM_FACE=anthropic)."""

import json
import os

import litellm
from pydantic import BaseModel

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, URL, V1, WEATHER, WEATHER_TOOL, get_weather, run

FACE = os.environ.get("PODIUM_FACE", "openai")
BASE = URL if FACE == "anthropic" else V1
TOOLS = [{"type": "function", "function": WEATHER_TOOL}]


class Place(BaseModel):
    town: str


def ask(messages, model="podium", **options):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return litellm.completion(
        model=f"{FACE}/{model}", api_base=BASE, api_key="x", messages=messages, max_retries=0, **options
    )


def content(reply):
    return reply.choices[0].message.content


def second_turn():
    first = {"role": "assistant", "content": content(ask(NAME))}
    return content(ask([{"role": "user", "content": NAME}, first, {"role": "user", "content": RECALL}]))


def loop(ask_once):
    messages = [{"role": "user", "content": WEATHER}]
    called = ask_once(messages).choices[0].message
    call = called.tool_calls[0]
    result = get_weather(**json.loads(call.function.arguments))
    return content(
        ask_once([*messages, called, {"role": "tool", "tool_call_id": call.id, "content": result}])
    )


def image():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return content(ask([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}]))


def whole(messages, **options):
    return litellm.stream_chunk_builder(list(ask(messages, stream=True, **options)))


def thoughts():
    wanted = {"reasoning_effort": "low"}
    if FACE == "anthropic":
        wanted = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 3000}
    return ask("Think.", "quill", **wanted).choices[0].message.reasoning_content


run(
    {
        "text": lambda: content(ask(BLUE)),
        "stream": lambda: content(whole(BLUE)),
        "second turn": second_turn,
        "tools": lambda: loop(lambda messages: ask(messages, tools=TOOLS)),
        "streamed tools": lambda: loop(lambda messages: whole(messages, tools=TOOLS)),
        "JSON schema": lambda: Place.model_validate_json(content(ask(TOWN, response_format=Place))).town,
        "image": image,
        "thoughts": thoughts,
        "unknown model": lambda: ask(BLUE, UNKNOWN),
    }
)
