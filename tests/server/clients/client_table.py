"""The clients that Podium was tried with, and what each can do: the table of docs/agents.md is made from it.

`real_clients.py` runs every row with the client's own package.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FEATURES = (
    "text",
    "stream",
    "second turn",
    "tools",
    "streamed tools",
    "JSON schema",
    "image",
    "thoughts",
    "unknown model",
)
"""The columns, in order. A client has a feature if its program has it."""

ANSWERS = {
    "text": "blue",
    "stream": "blue",
    "second turn": "Ada",
    "tools": "snow in Oslo",
    "streamed tools": "snow in Oslo",
    "JSON schema": "Oslo",
    "image": "I see 1 picture",
    "thoughts": "step by step",
    "unknown model": "The model 'nobody' does",
    "log probabilities": "blue",
    "log probabilities of a team": "logprobs",
    "coding task": "def add",
}
"""What the text of a feature contains if the feature works. The last four are not columns."""


@dataclass(frozen=True, slots=True)
class Client:
    """One row: a client, or one of its ways to speak."""

    name: str
    how: str
    """How it is pointed at the server, in Markdown."""
    program: str
    """In `programs/`; it prints {feature: text}."""
    environment: str = "python"
    """"python", "litellm", "aider", "webui" or "node": `runs/clients.sh` makes them."""
    face: str = ""
    """The program's variable PODIUM_FACE."""
    features: tuple[str, ...] = FEATURES
    """Those that work."""
    says: dict[str, str] = field(default_factory=dict)
    """By feature: part of the sentence that the user gets instead."""


NO_IMAGE = tuple(name for name in FEATURES if name not in {"image", "thoughts"})
NO_THOUGHTS = tuple(name for name in FEATURES if name != "thoughts")
CLIENTS = (
    Client("OpenAI for Python, chat", '`OpenAI(base_url=".../v1")`', "openai_chat.py"),
    Client("OpenAI for Python, responses", "the same", "openai_responses.py"),
    Client("OpenAI for JavaScript, chat", "`new OpenAI({ baseURL })`", "openai_js.mjs", "node", "chat"),
    Client("OpenAI for JavaScript, responses", "the same", "openai_js.mjs", "node", "responses"),
    Client("Anthropic for Python", '`Anthropic(base_url="http://127.0.0.1:8080")`', "anthropic_messages.py"),
    Client(
        "Anthropic for JavaScript",
        "`new Anthropic({ baseURL })`",
        "anthropic_js.mjs",
        "node",
        features=tuple(name for name in FEATURES if name != "JSON schema"),
    ),
    Client(
        "Vercel AI SDK, responses",
        "`createOpenAI({ baseURL })('podium')`",
        "vercel_ai.mjs",
        "node",
        "responses",
        NO_THOUGHTS,
    ),
    Client("Vercel AI SDK, chat", "`.chat('podium')`", "vercel_ai.mjs", "node", "chat", NO_THOUGHTS),
    Client(
        "Vercel AI SDK, Anthropic",
        "`createAnthropic({ baseURL })('podium')`, with `/v1`",
        "vercel_ai.mjs",
        "node",
        "anthropic",
        NO_THOUGHTS,
    ),
    Client(
        "Agents SDK, responses", "`OpenAIResponsesModel`, or its default", "agents_sdk.py", features=NO_IMAGE
    ),
    Client(
        "Agents SDK, chat", "`OpenAIChatCompletionsModel`", "agents_sdk.py", face="chat", features=NO_IMAGE
    ),
    Client("LangChain, chat", '`ChatOpenAI(base_url=".../v1")`', "langchain_chat.py", features=NO_THOUGHTS),
    Client(
        "LangChain, responses",
        "`use_responses_api=True`",
        "langchain_chat.py",
        face="responses",
        features=NO_THOUGHTS,
    ),
    Client(
        "LlamaIndex",
        '`OpenAILike(api_base=".../v1")`, as chat model or not',
        "llamaindex.py",
        "litellm",
        features=("text", "stream", "second turn", "tools", "streamed tools", "unknown model"),
    ),
    Client(
        "AutoGen",
        '`OpenAIChatCompletionClient(base_url=".../v1", model_info=...)`',
        "autogen.py",
        "litellm",
        features=NO_IMAGE,
    ),
    Client("LiteLLM, OpenAI", "`openai/podium`", "litellm_programs.py", "litellm", face="openai"),
    Client(
        "LiteLLM, Anthropic",
        "`anthropic/podium`",
        "litellm_programs.py",
        "litellm",
        "anthropic",
        NO_THOUGHTS,
        {"thoughts": "anthropic does not support parameters: ['thinking']"},
    ),
    Client("pydantic-ai, chat", "`OpenAIChatModel`", "pydantic_ai_agent.py", face="chat", features=NO_IMAGE),
    Client(
        "pydantic-ai, responses",
        "`OpenAIResponsesModel`",
        "pydantic_ai_agent.py",
        face="responses",
        features=NO_IMAGE,
    ),
    Client(
        "pydantic-ai, Anthropic",
        "`AnthropicModel`",
        "pydantic_ai_agent.py",
        face="anthropic",
        features=NO_IMAGE,
    ),
    Client(
        "DSPy",
        '`dspy.LM("openai/podium", api_base=".../v1")`',
        "dspy_predict.py",
        "litellm",
        features=("text", "second turn", "unknown model"),
    ),
    Client(
        "llm",
        "`extra-openai-models.yaml`",
        "llm_command.py",
        features=NO_THOUGHTS,
    ),
    Client(
        "Inspect, chat",
        "`--model openai/podium`, `OPENAI_BASE_URL`",
        "inspect_eval.py",
        face="chat",
        features=("text", "second turn", "tools", "JSON schema", "thoughts", "unknown model"),
    ),
    Client(
        "Inspect, responses",
        "`-M responses_api=true`",
        "inspect_eval.py",
        face="responses",
        features=("text", "second turn", "tools", "JSON schema", "thoughts", "unknown model"),
    ),
    Client(
        "aider",
        "`--openai-api-base .../v1 --model openai/podium`",
        "aider_command.py",
        "aider",
        features=("text", "stream", "unknown model"),
    ),
    Client(
        "Open WebUI",
        "`OPENAI_API_BASE_URL=.../v1`",
        "open_webui.py",
        "webui",
        features=FEATURES[:-1],
        says={"unknown model": "Model not found"},
    ),
    Client(
        "LibreChat",
        "its `@librechat/agents`, with `configuration: { baseURL }`",
        "librechat.mjs",
        "node",
        features=("stream", "second turn", "streamed tools", "image", "thoughts", "unknown model"),
    ),
)


def markdown() -> str:
    """The table of docs/agents.md."""
    lines = [f"| client | how | {' | '.join(FEATURES)} |", "|---|---|" + "---|" * len(FEATURES)]
    for client in CLIENTS:
        cells = ["✓" if name in client.features else client.says.get(name, "") for name in FEATURES]
        lines.append(f"| {client.name} | {client.how} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
