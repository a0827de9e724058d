"""AutoGen's OpenAI client and its assistant. It sends the name of each participant."""

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Response
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

from harness import BLUE, NAME, RECALL, TOWN, UNKNOWN, V1, WEATHER, get_weather, run

ABILITIES = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": "unknown",
    "structured_output": True,
}


class Place(BaseModel):
    town: str


def agent(model="podium", **options):
    client = OpenAIChatCompletionClient(
        model=model, base_url=V1, api_key="x", max_retries=0, model_info=ABILITIES
    )
    return AssistantAgent("helper", model_client=client, **options)


async def text(question=BLUE, **options):
    return (await agent(**options).run(task=question)).messages[-1].content


async def streamed(question=BLUE, **options):
    found = [event async for event in agent(model_client_stream=True, **options).run_stream(task=question)]
    assert not isinstance(found[-1], Response)
    return found[-1].messages[-1].content


async def second_turn():
    helper = agent()
    await helper.run(task=NAME)
    return (await helper.run(task=RECALL)).messages[-1].content


TOOLS = {"tools": [get_weather], "reflect_on_tool_use": True}
run(
    {
        "text": text,
        "stream": streamed,
        "second turn": second_turn,
        "tools": lambda: text(WEATHER, **TOOLS),
        "streamed tools": lambda: streamed(WEATHER, **TOOLS),
        "JSON schema": lambda: text(TOWN, output_content_type=Place),
        "unknown model": lambda: text(model=UNKNOWN),
    }
)
