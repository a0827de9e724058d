"""LangChain's ChatOpenAI, by chat completions or the Responses API (PODIUM_FACE=responses)."""

import os

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, get_weather, run

FACE = {"use_responses_api": os.environ.get("PODIUM_FACE") == "responses"}


class Place(BaseModel):
    """A place."""

    town: str


def model(name="podium", **options):
    return ChatOpenAI(model=name, base_url=V1, api_key="x", max_retries=0, **FACE, **options)


bound = model().bind_tools([tool(get_weather)])


def text(message):
    return message.text if isinstance(message.text, str) else message.text()


def joined(pieces):
    whole = None
    for piece in pieces:
        whole = piece if whole is None else whole + piece
    return whole


def loop(ask):
    messages = [HumanMessage(WEATHER, name="reader")]
    called = ask(messages)
    call = called.tool_calls[0]
    return text(ask([*messages, called, ToolMessage(get_weather(**call["args"]), tool_call_id=call["id"])]))


def image():
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return text(model().invoke([HumanMessage([{"type": "text", "text": "What is this?"}, picture])]))


run(
    {
        "text": lambda: text(model().invoke(BLUE)),
        "stream": lambda: text(joined(model().stream(BLUE))),
        "second turn": lambda: text(
            model().invoke([HumanMessage(NAME), model().invoke(NAME), HumanMessage(RECALL)])
        ),
        "tools": lambda: loop(bound.invoke),
        "streamed tools": lambda: loop(lambda messages: joined(bound.stream(messages))),
        "JSON schema": lambda: model().with_structured_output(Place).invoke(TOWN).town,
        "image": image,
        "unknown model": lambda: model(UNKNOWN).invoke(BLUE),
    }
)
