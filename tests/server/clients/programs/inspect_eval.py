"""Inspect: a task with a tool, over chat completions and responses, with reasoning effort and log probabilities."""

import os

os.environ |= {
    "OPENAI_API_KEY": "x",
    "OPENAI_BASE_URL": os.environ["PODIUM_URL"] + "/v1",
    "INSPECT_DISPLAY": "none",
}

from inspect_ai.model import (
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
    execute_tools,
    get_model,
)
from inspect_ai.tool import tool
from inspect_ai.util import json_schema
from pydantic import BaseModel

from harness import BLUE, NAME, RECALL, UNKNOWN, WEATHER, run

RESPONSES = os.environ.get("PODIUM_FACE") == "responses"


class Place(BaseModel):
    town: str


@tool
def get_weather():
    async def execute(town: str) -> str:
        """The weather in a town.

        Args:
            town: its name.
        """
        return f"snow in {town}"

    return execute


def model(name="podium"):
    return get_model(f"openai/{name}", responses_api=RESPONSES, config=GenerateConfig(max_retries=0))


async def text(question=BLUE, name="podium", **config):
    return (await model(name).generate(question, config=GenerateConfig(**config))).completion


async def second_turn():
    first = await model().generate(NAME)
    given = [ChatMessageUser(content=NAME), first.message, ChatMessageUser(content=RECALL)]
    return (await model().generate(given)).completion


async def tools():
    messages = [ChatMessageUser(content=WEATHER)]
    called = await model().generate(messages, tools=[get_weather()])
    messages.append(called.message)
    messages += (await execute_tools(messages, [get_weather()])).messages
    return (await model().generate(messages, tools=[get_weather()])).completion


async def schema():
    wanted = ResponseSchema(name="place", json_schema=json_schema(Place))
    return Place.model_validate_json(await text("name the town: Oslo", response_schema=wanted)).town


async def thoughts():
    done = await model("quill").generate("Think.", config=GenerateConfig(reasoning_effort="low"))
    return next(part.reasoning or part.summary for part in done.message.content if part.type == "reasoning")


async def logprobs():
    done = await model("quill").generate(BLUE, config=GenerateConfig(logprobs=True, top_logprobs=1))
    return [token.token for token in done.choices[0].logprobs.content]


run(
    {
        "text": text,
        "second turn": second_turn,
        "tools": tools,
        "JSON schema": schema,
        "thoughts": thoughts,
        "log probabilities": logprobs,
        "log probabilities of a team": lambda: text(logprobs=True, top_logprobs=1),
        "unknown model": lambda: text(name=UNKNOWN),
    }
)
