"""What an endpoint does not take, in the words of providers, gateways and servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.workers.chat.failures import read_error_body
from podium.workers.chat.unsupported_parameters import TokenLimit, token_limit, unsupported_parameters

SENT = {
    **{"model": "m", "messages": [], "temperature": 0.7, "top_p": 0.9, "top_k": 5, "seed": 1, "stop": ["\n"]},
    **{
        "presence_penalty": 0.1,
        "logprobs": True,
        "parallel_tool_calls": True,
        "stream_options": {},
        "stream": True,
    },
    **{
        "tools": [{}],
        "response_format": {},
        "tool_choice": "auto",
        "max_tokens": 9,
        "reasoning_effort": "low",
    },
    **{"user": "u", "thinking": {}, "provider": {}},
}


def refused(body: Any, status: int = 400) -> tuple[str, str | None] | None:
    content = body if isinstance(body, str) else json.dumps(body)
    error = read_error_body(content.encode())
    error = error if error.status is not None else type(error)(error.text, error.words, status, error.body)
    return next(unsupported_parameters(error, SENT), None)


def pydantic(
    *fields: str, kind: str = "extra_forbidden", said: str = "Extra inputs are not permitted"
) -> list[dict[str, Any]]:
    return [{"type": kind, "loc": ["body", *fields], "msg": said, "input": 0}]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
        (
            "Unsupported value: 'temperature' does not support 0.7 with this model. Only the default (1) value is "
            "supported.",
            "temperature",
        ),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            "max_tokens",
        ),
        ("`top_p` is not supported", "top_p"),
        ("Unknown parameter: 'top_k'.", "top_k"),
        ("Unrecognized request argument supplied: top_k", "top_k"),
        ("Model incompatible request argument supplied: temperature", "temperature"),
        ("Additional properties are not allowed ('top_k' was unexpected)", "top_k"),
        ("'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls"),
        ("This model does not support logprobs.", "logprobs"),
        ("temperature: Extra inputs are not permitted", "temperature"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("`temperature` may only be set to 1 when thinking is enabled.", "temperature"),
        ("`top_k` must be unset when thinking is enabled.", "top_k"),
        ("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.", "top_p"),
        ("Malformed input request: #: extraneous key [top_k] is not permitted, please reformat", "top_k"),
        ("This model doesn't support the stopSequences field. Remove stopSequences and try again.", "stop"),
        (
            'Invalid JSON payload received. Unknown name "presence_penalty": Cannot find field.',
            "presence_penalty",
        ),
        ("Penalty is not enabled for models/gemini-2.5-flash-lite", "presence_penalty"),
        ("Argument not supported on this model: stop", "stop"),
        ("Argument not supported: presencePenalty", "presence_penalty"),
        ("Model grok-3 does not support parameter reasoningEffort.", "reasoning_effort"),
        ("property 'logprobs' is unsupported", "logprobs"),
        ("Extra inputs are not permitted, field: 'seed', value: 1", "seed"),
        (
            'Extra parameters ["stream_options"] are not allowed when extra-parameters is not set',
            "stream_options",
        ),
        ("parameter 'seed' is not a valid field", "seed"),
        ("Failed to parse: unknown field `seed`, expected one of `temperature`, `top_p`", "seed"),
        ("openai does not support parameters: ['temperature'], for model=o1.", "temperature"),
        ("invalid temperature: only 1 is allowed for this model", "temperature"),
        ("create() got an unexpected keyword argument 'top_k'", "top_k"),
        ("Unsupported value: 'stream' does not support true with this model.", "stream"),
        ("Unknown parameter: 'user'.", "user"),
        ("temperature is not available for reasoning models", "temperature"),
        ("The parameter top_k cannot be used with this model.", "top_k"),
        ("This model does not take a temperature", "temperature"),
        ("reasoning_effort cannot be used together with tools", "reasoning_effort"),
        ("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens"),
    ],
)
def test_a_refusal_names_its_parameter(said: str, name: str) -> None:
    assert refused({"error": {"message": said}}) == (name, None)
    assert refused(said, 422) == (name, None)
    assert refused([{"error": {"message": said, "code": 400}}]) == (name, None)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"detail": pydantic("temperature")}, "temperature"),
        ({"object": "error", "message": {"detail": pydantic("stream_options")}}, "stream_options"),
        (
            {"error": {"message": "invalid input error", "details": pydantic("presence_penalty")}},
            "presence_penalty",
        ),
        ({"error": {"message": "No.", "code": "unsupported_parameter", "param": "body.top_p"}}, "top_p"),
        ({"error": {"message": "This parameter is not supported.", "param": "thinking.type"}}, "thinking"),
        ({"detail": pydantic("temperature", kind="less_than_equal", said="at most 2")}, None),
        ({"error": {"message": "Invalid.", "code": "unsupported_parameter", "param": "tools"}}, None),
        ({"detail": pydantic("messages", "0", "temperature2")}, None),
    ],
)
def test_a_refusal_in_fields_names_its_parameter(body: Any, name: str | None) -> None:
    found = refused(body, 422)
    assert (found and found[0]) == name


@pytest.mark.parametrize(
    "said",
    [
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        "temperature and top_p are mutually exclusive",
        "You cannot specify both temperature and top_p.",
        "Setting 'temperature' and 'top_p' at the same time is not supported.",
        "temperature and top_p cannot be used together",
    ],
)
def test_first_of_two_exclusive_parameters_is_kept(said: str) -> None:
    assert refused({"error": {"message": said}}) == ("top_p", "temperature")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 9 instead.",
            400,
        ),
        ("temperature must be between 0 and 2; 9 is not allowed", 422),
        ("temperature: 9 is not supported, the range is [0, 2]", 400),
        ("tools is not supported with this model", 400),
        ("Unsupported parameter: 'response_format' is not supported with this model.", 400),
        ("This response_format type is unavailable now", 400),
        ("Unknown parameter: 'provider'.", 400),
        ("Unknown parameter: 'frequency_penalty2'.", 400),
        ("The temperature of the request was read. No such deployment.", 400),
        ("An unknown error occurred while sampling with temperature 0.7", 500),
        ("the user is not allowed to use this model while thinking", 400),
    ],
)
def test_invalid_values_and_other_errors_are_no_parameter_refusal(said: str, status: int) -> None:
    assert refused({"error": {"message": said}}, status) is None


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (
            "This model's maximum context length is 4097 tokens. However, you requested 4116 tokens (16 in the "
            "messages, 4100 in the completion).",
            TokenLimit(4097, 16, 4116),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 2048 "
            "tokens and your request has 30 input tokens (4096 > 2048 - 30).",
            TokenLimit(2048, 30),
        ),
        (
            "This model's maximum context length is 2048 tokens. However, you requested 4096 output tokens and your "
            "prompt contains at least 30 input tokens, for a total of at least 4126 tokens.",
            TokenLimit(2048, 30),
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 30 `inputs` tokens and 4096 `max_new_tokens`",
            TokenLimit(4096, 30),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total "
            "of 4126 tokens: 30 tokens from the input messages and 4096 tokens for the completion.",
            TokenLimit(2048, 30, 4126),
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            TokenLimit(200000, 190000),
        ),
        (
            "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you "
            "provided 20000.",
            TokenLimit(output=16384),
        ),
        (
            "max_tokens: 10000 > 8192, which is the maximum allowed number of output tokens for claude-3-haiku",
            TokenLimit(output=8192),
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", TokenLimit(output=8192)),
        ("`max_tokens` must be less than or equal to `8192`", TokenLimit(output=8192)),
        ("max_tokens must be at least 1", None),
        ("Rate limit reached: 4096 tokens", None),
    ],
)
def test_an_error_names_limits_of_tokens(said: str, limit: TokenLimit | None) -> None:
    assert token_limit(read_error_body(json.dumps({"error": {"message": said}}).encode())) == limit


def test_fields_name_the_context_of_a_server() -> None:
    body = {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 5000,
            "n_ctx": 4096,
        }
    }
    assert token_limit(read_error_body(json.dumps(body).encode())) == TokenLimit(4096, 5000)
