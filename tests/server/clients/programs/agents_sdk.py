"""OpenAI's Agents SDK, over the Responses API and over chat completions (PODIUM_FACE=chat)."""

import os

import agents
from openai import AsyncOpenAI
from pydantic import BaseModel

from harness import BLUE, NAME, RECALL, TOWN, UNKNOWN, V1, WEATHER, get_weather, run

agents.set_tracing_disabled(True)
FACE = (
    agents.OpenAIChatCompletionsModel
    if os.environ.get("PODIUM_FACE") == "chat"
    else agents.OpenAIResponsesModel
)


class Place(BaseModel):
    town: str


def agent(model="podium", **options):
    client = AsyncOpenAI(base_url=V1, api_key="x", max_retries=0)
    return agents.Agent(name="helper", model=FACE(model, client), **options)


async def text(question=BLUE, **options):
    return (await agents.Runner.run(agent(**options), question)).final_output


async def streamed(question=BLUE, **options):
    done = agents.Runner.run_streamed(agent(**options), question)
    async for _ in done.stream_events():
        pass
    return done.final_output


async def second_turn():
    first = await agents.Runner.run(agent(), NAME)
    given = [*first.to_input_list(), {"role": "user", "content": RECALL}]
    return (await agents.Runner.run(agent(), given)).final_output


TOOLS = [agents.function_tool(get_weather)]
run(
    {
        "text": text,
        "stream": streamed,
        "second turn": second_turn,
        "tools": lambda: text(WEATHER, tools=TOOLS),
        "streamed tools": lambda: streamed(WEATHER, tools=TOOLS),
        "JSON schema": lambda: text(TOWN, output_type=Place),
        "unknown model": lambda: text(model=UNKNOWN),
    }
)
