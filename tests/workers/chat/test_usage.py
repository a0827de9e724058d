"""What providers say of tokens: understood in their several ways, and not believed where it cannot be."""

import pytest

from podium.types import AnswerOptions, Message, Price, ToolCall, Usage
from podium.workers.chat.usage import read_usage

MESSAGES = (Message(role="user", content="What is 2 + 2?"),)


def _usage(said: object, thought: str = "") -> Usage:
    return read_usage(said, MESSAGES, "4", thought)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (None, Usage(input_tokens=4, output_tokens=1)),
        ([], Usage(input_tokens=4, output_tokens=1)),
        ({"prompt_tokens": 12}, Usage(input_tokens=12, output_tokens=1)),
        ({"prompt_tokens": None, "completion_tokens": 3}, Usage(input_tokens=4, output_tokens=3)),
        ({"prompt_tokens": -1, "completion_tokens": "3"}, Usage(input_tokens=4, output_tokens=1)),
        ({"prompt_tokens": 1.5, "completion_tokens": float("inf")}, Usage(input_tokens=4, output_tokens=1)),
        (
            {"prompt_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 50}},
            Usage(input_tokens=12, output_tokens=50, reasoning_tokens=50),
        ),
        (
            {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 13}},
            Usage(input_tokens=12, output_tokens=3),
        ),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 5},
            },
            Usage(input_tokens=12, output_tokens=3),
        ),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(input_tokens=12, output_tokens=3),
        ),
    ],
)
def test_missing_or_absurd_usage_is_estimated_and_marked(said: object, expected: Usage) -> None:
    assert _usage(said) == expected.model_copy(update={"estimated": True})


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"prompt_tokens": 12.0, "completion_tokens": 3}, Usage(input_tokens=12, output_tokens=3)),
        (
            {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": None},
            Usage(input_tokens=12, output_tokens=3),
        ),
        (
            {
                "prompt_tokens": 12,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 12},
                "completion_tokens_details": {"reasoning_tokens": 9},
            },
            Usage(input_tokens=12, output_tokens=9, cached_tokens=12, reasoning_tokens=9),
        ),
        (
            {"prompt_tokens": 12, "completion_tokens": 3, "prompt_cache_hit_tokens": 8},
            Usage(input_tokens=12, output_tokens=3, cached_tokens=8),
        ),
        (
            {"prompt_tokens": 12, "completion_tokens": 3, "cached_tokens": 8},
            Usage(input_tokens=12, output_tokens=3, cached_tokens=8),
        ),
    ],
)
def test_usage_of_each_provider_is_understood(said: object, expected: Usage) -> None:
    assert _usage(said) == expected


@pytest.mark.parametrize(
    ("said", "expected", "implausible"),
    [
        ((0, 0), (4, 100), "0 tokens of input and 0 tokens of output"),
        ((0, 90), (4, 90), "0 tokens of input"),
        ((12, 0), (12, 100), "0 tokens of output"),
        ((12, 12), (12, 100), "12 tokens of output"),
        ((12, 13), (12, 13), None),
        ((12, 10**8), (12, 100), f"{10**8} tokens of output"),
        ((12, 801), (12, 801), None),
        ((12, 800), (12, 800), None),
        ((10**8, 90), (4, 90), f"{10**8} tokens of input"),
        ((262_144, 90), (262_144, 90), None),
    ],
)
def test_impossible_token_counts_are_replaced_and_named(
    said: tuple[int, int], expected: tuple[int, int], implausible: str | None
) -> None:
    counts = {"prompt_tokens": said[0], "completion_tokens": said[1]}
    usage = read_usage(counts, MESSAGES, "four" * 100, max_tokens=50)
    assert (usage.input_tokens, usage.output_tokens) == expected
    assert (usage.estimated, usage.implausible) == (implausible is not None, implausible)


def test_plausible_token_count_includes_tools_calls_and_images() -> None:
    call = ToolCall(id="c", name="note", arguments=" " * 80_000)
    sent = (
        Message(role="user", content="What is 2 + 2?", images=("https://example.com/a.png",)),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="4", tool_call_id="c"),
    )
    tools = ({"type": "function", "function": {"name": "f", "description": " " * 600_000}},)
    counts = {"prompt_tokens": 300_000, "completion_tokens": 1}
    for messages, options in ((sent, AnswerOptions()), (MESSAGES, AnswerOptions(tools=tools))):
        assert read_usage(counts, messages, "4", options=options).input_tokens == 300_000
    assert read_usage(counts, MESSAGES, "4").implausible == "300000 tokens of input"
    small = read_usage({"prompt_tokens": 90, "completion_tokens": 1}, sent[:1], "4")
    assert (small.input_tokens, small.estimated) == (90, False)
    assert read_usage(None, sent[:1], "4").input_tokens == 1004


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 1030,
                "prompt_tokens_details": {"cached_tokens": 700},
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            Usage(input_tokens=900, output_tokens=130, cached_tokens=700, reasoning_tokens=100),
            id="xAI",
        ),
        pytest.param(
            {
                "input_tokens": 900,
                "output_tokens": 30,
                "input_tokens_details": {"cached_tokens": 700},
                "output_tokens_details": {"reasoning_tokens": 20},
            },
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700, reasoning_tokens=20),
            id="Responses",
        ),
        pytest.param(
            {
                "input_tokens": 10,
                "output_tokens": 30,
                "cache_read_input_tokens": 700,
                "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 90},
            },
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700, cache_write_tokens=190),
            id="Anthropic, writes by their life",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "completion_tokens": 30,
                "cache_read_input_tokens": 700,
                "cache_creation_input_tokens": 190,
            },
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700, cache_write_tokens=190),
            id="Anthropic, renamed by a gateway",
        ),
        pytest.param(
            {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "cache_read_input_tokens": 700,
                "cache_creation_input_tokens": 190,
                "prompt_tokens_details": {"cached_tokens": 700, "cache_creation_tokens": 190},
            },
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700, cache_write_tokens=190),
            id="LiteLLM",
        ),
        pytest.param(
            {
                "inputTokens": 10,
                "outputTokens": 30,
                "totalTokens": 40,
                "cacheReadInputTokens": 700,
                "cacheWriteInputTokens": 190,
            },
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700, cache_write_tokens=190),
            id="Bedrock",
        ),
        pytest.param(
            {"prompt_cache_hit_tokens": 700, "prompt_cache_miss_tokens": 200, "completion_tokens": 30},
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700),
            id="DeepSeek, without a sum",
        ),
        pytest.param(
            {
                "promptTokenCount": 900,
                "cachedContentTokenCount": 700,
                "candidatesTokenCount": 30,
                "thoughtsTokenCount": 100,
                "totalTokenCount": 1030,
            },
            Usage(input_tokens=900, output_tokens=130, cached_tokens=700, reasoning_tokens=100),
            id="Gemini",
        ),
        pytest.param(
            {"cache_n": 700, "prompt_n": 200, "predicted_n": 30},
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700),
            id="llama.cpp, timings alone",
        ),
        pytest.param(
            {"prompt_tokens": 900, "completion_tokens": 30, "cache_n": 700, "prompt_n": 200},
            Usage(input_tokens=900, output_tokens=30, cached_tokens=700),
            id="llama.cpp",
        ),
        pytest.param(
            {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "cost": 0.0125,
                "cache_discount": 0.001,
                "prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 190},
            },
            Usage(
                input_tokens=900,
                output_tokens=30,
                cached_tokens=700,
                cache_write_tokens=190,
                billed_usd=0.0125,
            ),
            id="OpenRouter",
        ),
    ],
)
def test_cached_and_written_tokens_of_each_provider(said: dict[str, object], expected: Usage) -> None:
    assert _usage(said) == expected


@pytest.mark.parametrize("cost", [-1, 0, True, "0.5", float("nan"), float("inf"), 1e30, {"total": 1}])
def test_impossible_cost_is_ignored(cost: object) -> None:
    assert _usage({"prompt_tokens": 12, "completion_tokens": 3, "cost": cost}).billed_usd is None


@pytest.mark.parametrize(("price", "usd"), [(Price(), 0.5), (Price(input=1.0), 0.5), (Price(input=1e5), 1.2)])
def test_the_larger_of_a_reported_and_a_computed_cost_counts(price: Price, usd: float) -> None:
    said = {"prompt_tokens": 12, "completion_tokens": 3, "cost": 0.5}
    assert price.cost(_usage(said)) == pytest.approx(usd)


def test_hidden_reasoning_may_pass_max_tokens_but_not_by_any_number() -> None:
    def counted(reasoning: int) -> Usage:
        details = {"completion_tokens_details": {"reasoning_tokens": reasoning}}
        said = {"prompt_tokens": 12, "completion_tokens": reasoning + 3, **details}
        return read_usage(said, MESSAGES, "4", max_tokens=50)

    assert counted(250_000).output_tokens == 250_003
    assert counted(10**8).output_tokens == 1


@pytest.mark.parametrize("details", [{}, {"completion_tokens_details": {"reasoning_tokens": 40}}])
def test_reasoning_counted_only_in_the_total_is_charged(details: dict[str, object]) -> None:
    said = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 55, **details}
    assert _usage(said) == Usage(input_tokens=12, output_tokens=43, reasoning_tokens=40)


def test_usage_estimate_includes_visible_reasoning() -> None:
    assert _usage(None, "x" * 400).output_tokens == 101
