"""When to ask again, in the forms in which providers say it."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from chat_endpoint import Endpoint, failure
from chat_worker import ChatClient
from podium.workers.chat.retry_hints import retry_after

NOW = datetime.now(UTC)
IN_A_DAY = NOW + timedelta(days=1)
DAY = (80_000, 86_400)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"retry-after": "0.5"}, 0.5, 0.5),
        ({"Retry-After": "7 s"}, 7, 7),
        ({"Retry-After": "1m30s"}, 90, 90),
        ({"Retry-After": format_datetime(IN_A_DAY, usegmt=True)}, *DAY),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"Retry-After": IN_A_DAY.isoformat()}, *DAY),
        ({"Retry-After": str(int(IN_A_DAY.timestamp()))}, *DAY),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25, 0.25),
        ({"Retry-After": "2", "x-ratelimit-reset-requests": "9s"}, 2, 2),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360, 360),
        ({"x-ratelimit-reset-tokens": "120ms"}, 0.12, 0.12),
        ({"X-RateLimit-Reset": str(int(IN_A_DAY.timestamp() * 1000))}, *DAY),
        ({"ratelimit-reset": "12"}, 12, 12),
        ({"anthropic-ratelimit-tokens-reset": IN_A_DAY.isoformat()}, *DAY),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "900",
            },
            1,
            1,
        ),
    ],
    ids=range(16),  # A name that holds the time would differ between the processes that collect it.
)
async def test_headers_say_when_to_ask_again(
    endpoint: Endpoint, client: ChatClient, headers: dict[str, str], low: float, high: float
) -> None:
    endpoint.answer({}, 429, **{name.replace("-", "_"): value for name, value in headers.items()})
    after = (await failure(client)).retry_after_s
    assert after is not None
    assert low <= after <= high


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry_After": "soon"}),
        (429, {"Retry_After": "9" * 400}),
        (429, {"Retry_After": "-1"}),
        (429, {"x_ratelimit_reset_tokens": "never"}),
        (400, {"Retry_After": "7"}),
        (503, {"x_ratelimit_reset_requests": "6m0s"}),
    ],
)
async def test_invalid_retry_hints_are_ignored(
    endpoint: Endpoint, client: ChatClient, status: int, headers: dict[str, str]
) -> None:
    endpoint.answer({}, status, **headers)
    assert (await failure(client)).retry_after_s is None


RETRY_INFO = {
    "error": {
        "code": 429,
        "message": "Quota exceeded.",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"},
        ],
    }
}


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (RETRY_INFO, 37),
        ([RETRY_INFO], 37),
        ({"error": {"message": "Busy.", "retry_after": 3}}, 3),
        ({"error": {"message": "Busy.", "metadata": {"retry_after_seconds": 12}}}, 12),
        ({"error": {"message": "Busy."}, "retryAfterMs": 1500}, 1.5),
        ({"error": {"message": "Busy.", "metadata": {"headers": {"Retry-After": "4"}}}}, 4),
        ({"error": {"message": "Busy.", "retry_after": True}}, None),
        ({"error": {"message": "Busy."}}, None),
    ],
)
async def test_the_body_says_when_to_ask_again(
    endpoint: Endpoint, client: ChatClient, body: Any, seconds: float | None
) -> None:
    endpoint.answer(body, 429)
    assert (await failure(client)).retry_after_s == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached for gpt-4 on tokens per min (TPM): Limit 30. Please try again in 1.2s.", 1.2),
        ("Please try again in 20 s. Visit https://example.com to learn more.", 20),
        ("Please try again in 1m3s.", 63),
        ("Please try again in 6m0s.", 360),
        ("Please try again in 120ms.", 0.12),
        ("Please retry after 20 seconds.", 20),
        ("Please retry in 37.123s.", 37.123),
        ("Please wait 12 seconds before the next request.", 12),
        ("Too many requests; wait for 5 s", 5),
        ("The limit resets in 2 minutes and 5 seconds", 125),
        ("Try again in 1h2m3.5s", 3723.5),
        ("Model is loading, available in 7 sec", 7),
        ("Try again in a few minutes.", None),
        ("Limit: 60 s, used 60.", None),
        ("Retry with fewer than 3 messages", None),
    ],
)
def test_the_text_says_when_to_ask_again(text: str, seconds: float | None) -> None:
    assert retry_after({}, None, text) == pytest.approx(seconds)


async def test_loading_server_is_retried_after_the_delay_in_its_message(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer({"error": {"message": "Loading model, try again in 4 seconds"}}, 503)
    error = await failure(client)
    assert (error.retryable, error.retry_after_s) == (True, 4)
