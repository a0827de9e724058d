"""Anthropic for Python: messages."""

import json

from anthropic import Anthropic

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, URL, WEATHER, WEATHER_TOOL, get_weather, run

client = Anthropic(base_url=URL, api_key="x", max_retries=0)
TOOLS = [
    {
        "name": WEATHER_TOOL["name"],
        "description": WEATHER_TOOL["description"],
        "input_schema": WEATHER_TOOL["parameters"],
    }
]


def ask(messages, **options):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return client.messages.create(
        model=options.pop("model", "podium"),
        max_tokens=options.pop("max_tokens", 500),
        messages=messages,
        **options,
    )


def text(message):
    return "".join(block.text for block in message.content if block.type == "text")


def streamed(messages, **options):
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    with client.messages.stream(model="podium", max_tokens=500, messages=messages, **options) as stream:
        pieces = list(stream.text_stream)
        return "".join(pieces), stream.get_final_message()


def after(message):
    call = next(block for block in message.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": get_weather(**call.input)}
    return [
        {"role": "user", "content": WEATHER},
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in message.content]},
        {"role": "user", "content": [result]},
    ]


def second_turn():
    history = [{"role": "user", "content": NAME}, {"role": "assistant", "content": text(ask(NAME))}]
    return text(ask([*history, {"role": "user", "content": RECALL}]))


def image():
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    return text(
        ask(
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image", "source": source},
                    ],
                }
            ]
        )
    )


def schema():
    wanted = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
    wanted["additionalProperties"] = False
    done = ask(TOWN, output_config={"format": {"type": "json_schema", "schema": wanted}})
    return json.loads(text(done))["town"]


def thoughts():
    done = ask("Think.", model="quill", max_tokens=3000, thinking={"type": "enabled", "budget_tokens": 1024})
    return next(block for block in done.content if block.type == "thinking").thinking


run(
    {
        "text": lambda: text(ask(BLUE)),
        "stream": lambda: streamed(BLUE)[0],
        "second turn": second_turn,
        "tools": lambda: text(ask(after(ask(WEATHER, tools=TOOLS)), tools=TOOLS)),
        "streamed tools": lambda: streamed(after(streamed(WEATHER, tools=TOOLS)[1]), tools=TOOLS)[0],
        "JSON schema": schema,
        "image": image,
        "thoughts": thoughts,
        "unknown model": lambda: ask(BLUE, model=UNKNOWN),
    }
)
