"""Replies that refuse, or are none: of what kind each failure is, whether it may pass, and what is told."""

import pytest

from chat_endpoint import KEY, Endpoint, failure, wire
from chat_worker import ChatClient


def refusal(message: str, **more: object) -> dict[str, object]:
    """The body of an error, as OpenAI writes it."""
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, refusal("No such parameter."), ("status", False, "status 400: No such parameter.")),
        (
            401,
            refusal(f"Wrong key {KEY}."),
            ("status", False, "status 401: Wrong key *** (is the key right?)."),
        ),
        (
            402,
            {"error": "Empty."},
            ("status", False, "status 402: Empty (pay the provider, or take another worker)."),
        ),
        (
            404,
            {"detail": "Not Found"},
            ("status", False, "status 404: Not Found (are base_url and model right?)."),
        ),
        (
            404,
            refusal("The model `m` does not exist.", code="model_not_found"),
            ("status", False, "status 404: The model `m` does not exist (is model right?)."),
        ),
        (
            400,
            refusal("m is not a valid model ID", code=400),
            ("status", False, "status 400: m is not a valid model ID (is model right?)."),
        ),
        (
            400,
            refusal("Over 512 tokens.", type="exceed_context_size_error", n_ctx=512),
            ("context", False, "status 400: Over 512 tokens (the messages are too long for it)."),
        ),
        (
            400,
            refusal("Too long.", code="context_length_exceeded"),
            ("context", False, "status 400: Too long (the messages are too long for it)."),
        ),
        (408, "", ("status", True, "status 408: (an empty body).")),
        (409, "", ("status", True, "status 409: (an empty body).")),
        (429, {"error": "slow down"}, ("rate_limited", True, "status 429: slow down.")),
        (
            429,
            refusal("Out of credit.", type="insufficient_quota"),
            ("rate_limited", False, "status 429: Out of credit (pay the provider, or take another worker)."),
        ),
        (500, "<html>\n<b>oops</b>\n</html>", ("status", True, "status 500: <html> <b>oops</b> </html>.")),
        (502, [refusal("No.", code=502)], ("status", True, "status 502: No.")),
        (503, [1], ("status", True, "status 503: [1].")),
        (529, "x" * 1000, ("status", True, f"status 529: {'x' * 300}….")),
        (
            502,
            {"error": {"message": "Provider returned error", "metadata": {"raw": "Too hot."}}},
            ("status", True, "status 502: Provider returned error: Too hot."),
        ),
        (
            400,
            refusal("Filtered.", code="content_filter"),
            ("content_filter", False, "it refused: Filtered."),
        ),
    ],
)
async def test_a_status_is_mapped_and_its_message_is_repeated(
    client: ChatClient, endpoint: Endpoint, status: int, body: object, told: tuple[str, bool, str]
) -> None:
    endpoint.answer(body, status)
    for stream in (False, True):
        error = await failure(client, stream=stream)
        assert (error.kind, error.retryable, str(error)) == (told[0], told[1], f"{endpoint.url}: {told[2]}")


async def test_redirect_is_refused_and_its_target_shown_without_secrets(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer("moved", 307, Location=f"https://me:hush@elsewhere.invalid/v2/{KEY}?token=hush")
    error = await failure(client)
    assert (error.kind, error.retryable) == ("status", False)
    assert str(error) == (
        f"{endpoint.url}: status 307: it redirects to https://elsewhere.invalid/v2/***; put the right address into "
        "base_url."
    )
    assert len(endpoint.bodies) == 1


async def test_secret_at_the_cut_of_an_error_message_is_redacted(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer("x" * 290 + KEY + "y" * 100, 500)
    assert KEY[:6] not in str(await failure(client))


@pytest.mark.parametrize(
    ("body", "kind", "retryable", "said"),
    [
        (
            f"<html>{KEY}",
            "protocol",
            True,
            "the reply is a page and not JSON: <html>*** (is base_url right?)",
        ),
        ("It works!", "protocol", True, "the reply is not JSON: It works! (is base_url right?)"),
        ("", "protocol", True, "the reply is cut off or garbled: (an empty body)"),
        ('{"choices": [{"mess', "protocol", True, 'the reply is cut off or garbled: {"choices": [{"mess'),
        (b'{"choices": [{"message": {"content": "\xff"}}]}', "protocol", True, "cut off or garbled"),
        ("[" * 100_000, "protocol", True, "cut off or garbled"),
        ("[]", "protocol", False, "the reply has no choices: []"),
        ("{}", "protocol", False, "the reply has no choices: {}"),
        ({"choices": []}, "protocol", True, "the reply has no choices"),
        ({"choices": [{"message": "4"}]}, "protocol", False, "the reply has no choices"),
        ({"choices": [{"message": {"content": None}}]}, "protocol", True, "no text (no finish_reason)"),
        (
            {"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]},
            "protocol",
            True,
            "the reply has no text (finish_reason 'stop')",
        ),
        (
            {"choices": [{"message": {"content": " "}, "finish_reason": "length"}]},
            "protocol",
            False,
            "it reached max_tokens before it wrote any answer; raise max_tokens",
        ),
        (
            {"choices": [{"message": {"content": "", "reasoning": "Hm"}, "finish_reason": "length"}]},
            "protocol",
            False,
            "before it wrote any answer (it reasoned until then); raise max_tokens",
        ),
        (
            {"choices": [{"message": {"content": "", "reasoning_content": "4"}, "finish_reason": "stop"}]},
            "protocol",
            False,
            "switch thinking off",
        ),
        (
            {"choices": [{"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"}]},
            "protocol",
            False,
            "it called a tool, but was offered none",
        ),
        (
            {"choices": [{"message": {"content": None, "refusal": "I will not."}}]},
            "content_filter",
            False,
            "it refused: I will not.",
        ),
        (
            {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]},
            "content_filter",
            False,
            "it refused: content_filter",
        ),
        (
            {"choices": [{"message": {"content": "Half"}, "finish_reason": "content_filter: SAFETY"}]},
            "content_filter",
            False,
            "it refused: content_filter: SAFETY",
        ),
        ({"error": {"code": 429, "message": "upstream"}}, "rate_limited", True, "status 429: upstream"),
        ({"error": {"code": "503", "message": "upstream"}}, "status", True, "status 503: upstream"),
        ({"error": {"type": "overloaded_error", "message": "Hot."}}, "status", True, "status 503: Hot."),
        ({"object": "error", "message": "Bad.", "code": 400}, "status", False, "status 400: Bad."),
        ({"error": {"code": "insufficient_quota", "message": "Out."}}, "status", False, "pay the provider"),
        ({"error": "odd"}, "status", False, "it reports an error: odd"),
        (
            {"choices": [{"message": {"content": "H"}, "finish_reason": "error", "error": {"code": 502}}]},
            "status",
            True,
            "status 502",
        ),
        ({"choices": [{"message": {"content": "H"}, "finish_reason": "error"}]}, "status", True, "broke off"),
    ],
)
async def test_a_reply_without_a_text_is_an_error_that_says_why(  # noqa: PLR0917
    endpoint: Endpoint, client: ChatClient, body: object, kind: str, retryable: bool, said: str
) -> None:
    endpoint.answer(body)
    error = await failure(client)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert said in str(error)


async def test_an_error_cannot_write_to_a_terminal_and_can_be_kept(
    endpoint: Endpoint, client: ChatClient
) -> None:
    endpoint.answer(refusal("a\x1b[2J\x07b \ud83d \u202ec\nd"), 500)
    assert str(await failure(client)) == f"{endpoint.url}: status 500: a [2J b c d."


async def test_the_body_of_a_refusal_that_never_ends_does_not_hide_the_status(endpoint: Endpoint) -> None:
    head = b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 999\r\n\r\nComing"
    async with wire(head, then_hang=True) as port:
        client = ChatClient(f"http://127.0.0.1:{port}", KEY)
        error = await failure(client, 30.0)
        await client.close()
    assert (error.kind, error.retryable, error.retry_after_s) == ("status", True, 9.0)
    assert "status 503: Coming" in str(error)
