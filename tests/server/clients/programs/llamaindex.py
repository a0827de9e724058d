"""LlamaIndex's OpenAILike as a chat model; by default it uses a route that Podium does not have."""

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from harness import BLUE, NAME, RECALL, UNKNOWN, V1, WEATHER, get_weather, run


def chat(model="podium"):
    return OpenAILike(
        model=model,
        api_base=V1,
        api_key="x",
        max_retries=0,
        is_chat_model=True,
        is_function_calling_model=True,
    )


def second_turn():
    first = [ChatMessage(role="user", content=NAME)]
    said = chat().chat(first).message
    return chat().chat([*first, said, ChatMessage(role="user", content=RECALL)]).message.content


async def tools(stream):
    agent = FunctionAgent(tools=[get_weather], llm=chat(), streaming=stream)
    return await agent.run(WEATHER)


run(
    {
        "text": lambda: chat().complete(BLUE).text,
        "stream": lambda: [piece.text for piece in chat().stream_complete(BLUE)][-1],
        "second turn": second_turn,
        "tools": lambda: tools(False),
        "streamed tools": lambda: tools(True),
        "unknown model": lambda: chat(UNKNOWN).complete(BLUE),
    }
)
