"""OpenAI for Python: chat completions."""

import json

from openai import OpenAI
from pydantic import BaseModel

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, WEATHER_TOOL, get_weather, run

client = OpenAI(base_url=V1, api_key="x", max_retries=0)
TOOLS = [{"type": "function", "function": WEATHER_TOOL}]


def ask(messages, **options):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return client.chat.completions.create(model=options.pop("model", "podium"), messages=messages, **options)


def streamed(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def second_turn():
    first = ask(NAME).choices[0].message.content
    history = [{"role": "user", "content": NAME}, {"role": "assistant", "content": first}]
    return ask([*history, {"role": "user", "content": RECALL}]).choices[0].message.content


def tools():
    messages = [{"role": "user", "content": WEATHER}]
    called = ask(messages, tools=TOOLS).choices[0].message
    call = called.tool_calls[0]
    result = get_weather(**json.loads(call.function.arguments))
    messages += [called.model_dump(exclude_none=True)]
    messages += [{"role": "tool", "tool_call_id": call.id, "content": result}]
    return ask(messages, tools=TOOLS).choices[0].message.content


def streamed_tools():
    with client.chat.completions.stream(
        model="podium", messages=[{"role": "user", "content": WEATHER}], tools=TOOLS
    ) as stream:
        called = stream.get_final_completion().choices[0].message
    call = called.tool_calls[0]
    messages = [
        {"role": "user", "content": WEATHER},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": get_weather(**json.loads(call.function.arguments)),
        },
    ]
    return streamed(ask(messages, tools=TOOLS, stream=True))


def schema():
    class Place(BaseModel):
        town: str

    done = client.chat.completions.parse(
        model="podium", messages=[{"role": "user", "content": TOWN}], response_format=Place
    )
    return done.choices[0].message.parsed.town


def image():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return (
        ask([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}])
        .choices[0]
        .message.content
    )


def thoughts():
    reply = ask("Think.", model="quill", reasoning_effort="low").choices[0].message
    return reply.model_extra["reasoning_content"]


run(
    {
        "text": lambda: ask(BLUE).choices[0].message.content,
        "stream": lambda: streamed(ask(BLUE, stream=True)),
        "second turn": second_turn,
        "tools": tools,
        "streamed tools": streamed_tools,
        "JSON schema": schema,
        "image": image,
        "thoughts": thoughts,
        "unknown model": lambda: ask(BLUE, model=UNKNOWN),
    }
)
