"""pydantic-ai: its models of chat completions, responses and Anthropic's messages (PODIUM_FACE)."""

import os

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from harness import BLUE, NAME, RECALL, TOWN, UNKNOWN, URL, V1, WEATHER, get_weather, run

FACE = os.environ["PODIUM_FACE"]


class Place(BaseModel):
    town: str


def agent(name="podium", **options):
    if FACE == "anthropic":
        model = AnthropicModel(name, provider=AnthropicProvider(base_url=URL, api_key="x"))
    else:
        kind = OpenAIChatModel if FACE == "chat" else OpenAIResponsesModel
        model = kind(name, provider=OpenAIProvider(base_url=V1, api_key="x"))
    return Agent(model, **options)


async def text(question=BLUE, **options):
    return (await agent(**options).run(question)).output


async def streamed(question=BLUE, **options):
    async with agent(**options).run_stream(question) as done:
        return await done.get_output()


async def second_turn():
    first = await agent().run(NAME)
    return (await agent().run(RECALL, message_history=first.all_messages())).output


run(
    {
        "text": text,
        "stream": streamed,
        "second turn": second_turn,
        "tools": lambda: text(WEATHER, tools=[get_weather]),
        "streamed tools": lambda: streamed(WEATHER, tools=[get_weather]),
        "JSON schema": lambda: text(TOWN, output_type=Place if FACE == "anthropic" else NativeOutput(Place)),
        "unknown model": lambda: text(name=UNKNOWN),
    }
)
