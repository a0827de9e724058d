"""OpenAI for Python: the Responses API."""

import json

from openai import OpenAI
from pydantic import BaseModel

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, WEATHER_TOOL, get_weather, run

client = OpenAI(base_url=V1, api_key="x", max_retries=0)
TOOLS = [{"type": "function", "strict": True, **WEATHER_TOOL}]


def ask(given, **options):
    return client.responses.create(model=options.pop("model", "podium"), input=given, **options)


def final(events):
    return next(event.response for event in events if event.type == "response.completed")


def streamed(events):
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def result_of(response):
    call = next(item for item in response.output if item.type == "function_call")
    return {
        "type": "function_call_output",
        "call_id": call.call_id,
        "output": get_weather(**json.loads(call.arguments)),
    }


def tools():
    first = ask(WEATHER, tools=TOOLS)
    return ask([result_of(first)], tools=TOOLS, previous_response_id=first.id).output_text


def streamed_tools():
    first = final(ask(WEATHER, tools=TOOLS, stream=True, store=False))
    given = [
        {"role": "user", "content": WEATHER},
        *(item.model_dump(exclude_none=True) for item in first.output),
    ]
    return streamed(ask([*given, result_of(first)], tools=TOOLS, stream=True, store=False))


def schema():
    class Place(BaseModel):
        town: str

    return client.responses.parse(model="podium", input=TOWN, text_format=Place).output_parsed.town


def image():
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
    ]
    return ask([{"role": "user", "content": parts}]).output_text


def thoughts():
    done = ask("Think.", model="quill", reasoning={"effort": "low", "summary": "auto"})
    return next(item for item in done.output if item.type == "reasoning").summary[0].text


run(
    {
        "text": lambda: ask(BLUE).output_text,
        "stream": lambda: streamed(ask(BLUE, stream=True)),
        "second turn": lambda: ask(RECALL, previous_response_id=ask(NAME).id).output_text,
        "tools": tools,
        "streamed tools": streamed_tools,
        "JSON schema": schema,
        "image": image,
        "thoughts": thoughts,
        "unknown model": lambda: ask(BLUE, model=UNKNOWN),
    }
)
