"""The provider, asked as Inspect's own code asks any model."""

import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    get_model,
)
from inspect_ai.tool import ToolInfo

import podium.inspect_provider.registry  # noqa: F401 - as Inspect does, by this package's entry point
from podium.errors import QuestionFailedError, UsageError
from podium.store import TraceStore
from podium.types import Message
from podium_testing import FaultServer, Rule, Status


async def ask(chat="The sum of 2 and 3?", *, tools=(), config=None, planner="single:ada", **settings):
    """What a model says that is opened for one chat, and closed after it."""
    async with get_model("podium/pool.toml", memoize=False, **{"plan.planner": planner, **settings}) as model:
        return await model.generate(chat, tools=list(tools), config=config or GenerateConfig())


def kept(trace_id):
    with TraceStore("kept/traces.sqlite", create=False) as store:
        return store.get(trace_id)


async def test_inspect_chat_becomes_a_question_with_history():

    output = await ask(
        [
            ChatMessageSystem(content="Be brief."),
            ChatMessageUser(content="Good day."),
            ChatMessageAssistant(
                content=[ContentReasoning(reasoning="Polite."), ContentText(text="To you too.")]
            ),
            ChatMessageUser(content=[ContentText(text="The sum of 2 and 3?")]),
        ]
    )
    question = kept(output.metadata["trace_id"]).question
    assert question.text == "The sum of 2 and 3?"
    assert question.history == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Good day."),
        Message(role="assistant", content="To you too."),
    )


async def test_inspect_output_has_usage_cost_and_trace_id():
    output = await ask()
    trace = kept(output.response_id)
    assert output.completion == trace.answer == "2 + 3 = 5\nAnswer: 5"
    assert output.stop_reason == "stop"
    assert output.error is None
    assert (output.usage.input_tokens, output.usage.output_tokens) == (
        trace.usage.input_tokens,
        trace.usage.output_tokens,
    )
    assert output.usage.total_cost == output.metadata["cost_usd"] == trace.cost_usd > 0
    assert output.metadata["trace_id"] == trace.id
    assert (output.metadata["planner"], output.metadata["calls"]) == ("single:ada", 1)


async def test_failed_workers_are_an_inspect_error_with_the_reason():
    with pytest.raises(
        QuestionFailedError,
        match=r"No step succeeded\. Step 0: eve: .*No text came\..* \(trace [0-9a-f]{32}\)",
    ):
        await ask(planner="single:eve")


def conductor(server):
    return {"planner": "conductor", "conductor": {"base_url": server.url, "model": "wise"}}


async def test_a_plan_that_cannot_be_read_is_a_wrong_answer_and_no_error():
    async with FaultServer("I would rather not plan.") as server:
        output = await ask(**conductor(server))
    assert (output.completion, output.stop_reason) == ("", "unknown")
    assert output.error.startswith("There is no plan to run.")
    assert (output.metadata["planner"], output.metadata["calls"]) == ("conductor:wise", 0)
    assert kept(output.response_id).status == "failed"


async def test_a_served_conductor_that_does_not_answer_is_an_error():
    async with FaultServer(rules=[Rule(fault=Status(code=401))]) as server:
        with pytest.raises(QuestionFailedError, match=r"There is no plan to run\. conductor:wise: .*401"):
            await ask(**conductor(server))


async def test_given_seed_is_used_and_a_missing_seed_is_drawn_anew():
    named = await ask(config=GenerateConfig(seed=7))
    assert kept(named.response_id).seed == "7"
    new = [kept((await ask()).response_id).seed for _ in range(2)]
    assert new[0] != new[1]


async def test_inspect_settings_decided_by_the_pool_are_listed_as_not_passed_on():
    output = await ask(config=GenerateConfig(temperature=0.0, max_tokens=9, seed=1))
    assert output.metadata["not_passed_on"] == ["temperature", "max_tokens"]


async def test_unsupported_inspect_requests_are_refused_in_one_sentence():
    picture = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    refused = [
        ({"tools": [ToolInfo(name="bash", description="Runs.")]}, "The solver offers the tool 'bash'"),
        ({"config": GenerateConfig(logprobs=True)}, "logprobs is set, and Podium cannot provide it"),
        ({"config": GenerateConfig(num_choices=2)}, "num_choices 2: a question has one answer"),
        ({"chat": [ChatMessageUser(content=[picture])]}, "The chat holds image content"),
        (
            {"chat": [ChatMessageTool(content="5"), ChatMessageUser(content="And?")]},
            "The chat holds a tool's message",
        ),
        ({"chat": [ChatMessageAssistant(content="5")]}, "The chat ends with a message of the assistant"),
        ({"chat": [ChatMessageUser(content=" ")]}, "The question is empty"),
    ]
    for asked, sentence in refused:
        with pytest.raises(UsageError, match=sentence):
            await ask(**asked)


def test_unusable_settings_are_prerequisite_errors_of_inspect():
    with pytest.raises(PrerequisiteError, match="unknown key 'pol'; did you mean 'pool'"):
        get_model("podium/pool.toml", memoize=False, pol="x")
    with pytest.raises(PrerequisiteError, match="--model-base-url http://x: a team file says"):
        get_model("podium/pool.toml", memoize=False, base_url="http://x")
