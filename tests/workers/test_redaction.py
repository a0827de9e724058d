"""Secrets are taken out of text in every dress, and nothing else is."""

import html
import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.workers.redaction import Secrets, looks_secret, redact_url

HARD = 'sk-/+"\\<&é%hush='


def _knowing(*values: str) -> Secrets:
    secrets = Secrets()
    for value in values:
        secrets.add(value)
    return secrets


@pytest.mark.parametrize(
    "dressed",
    [
        HARD,
        quote(HARD),
        quote(HARD, safe=""),
        quote(HARD, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%22", "%22").lower(),
        quote_plus(HARD),
        json.dumps(HARD),
        json.dumps(HARD, ensure_ascii=False),
        json.dumps(HARD).replace("/", "\\/"),
        html.escape(HARD),
        repr(HARD),
        b64encode(HARD.encode()).decode(),
        urlsafe_b64encode(HARD.encode()).decode(),
        b64encode(HARD.encode()).decode().rstrip("="),
    ],
)
def test_secret_is_redacted_in_every_encoding(dressed: str) -> None:
    scrubbed = _knowing(HARD).scrub(f"before {dressed} after")
    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")
    assert "***" in scrubbed
    assert "hush" not in scrubbed
    assert dressed.strip("\"'") not in scrubbed


@given(st.text(max_size=9), st.text(max_size=9))
def test_base64_of_a_secret_among_other_text_is_taken_out(before: str, after: str) -> None:
    key = "sk-hush-hush-0123456789"
    encoded = b64encode(f"{before}{key}{after}".encode()).decode()
    scrubbed = _knowing(key).scrub(encoded)
    # What is left at the ends holds less than one more character of it on each side.
    assert len(scrubbed.replace("***", "")) <= len(encoded) - len(key) * 8 // 6 + 2


@given(st.integers(8, 22), st.text("ab ", max_size=20))
def test_a_secret_that_the_end_cuts_off_is_taken_out(length: int, before: str) -> None:
    key = "sk-hush-hush-0123456789"
    assert _knowing(key).scrub(before + key[:length]) == before + "***"


@given(
    st.lists(st.text("abcdefgh", min_size=8, max_size=12), min_size=1, max_size=4),
    st.text("abcdefgh *", max_size=60),
)
def test_no_secret_is_left_whatever_the_text(values: list[str], text: str) -> None:
    secrets = _knowing(*values)
    scrubbed = secrets.scrub(" ".join([text, *values, text]))
    assert not any(value in scrubbed for value in values)


@given(st.text(max_size=200))
def test_other_text_stays_as_it_is(text: str) -> None:
    assert _knowing("sk-hush-hush-0123456789").scrub(text) == text


@pytest.mark.parametrize("value", ["", "  ", "k", "ollama", "EMPTY"])
def test_placeholder_keys_are_not_redacted(value: str) -> None:
    text = "Ask ollama, or leave it EMPTY."
    assert _knowing(value).scrub(text) == text


def test_the_token_of_a_header_is_a_secret_without_its_scheme() -> None:
    assert (
        _knowing("Bearer sk-hush-hush").scrub("token=sk-hush-hush; Bearer sk-hush-hush") == "token=***; ***"
    )


@pytest.mark.parametrize(
    "text",
    [
        "http://me:hu%2Fsh@proxy.invalid:3128",
        "me:hu/sh was refused",
        f"Proxy-Authorization: Basic {b64encode(b'me:hu/sh').decode()}",
    ],
)
def test_a_proxys_password_is_known_from_the_environment(text: str) -> None:
    secrets = Secrets.of_proxies({"HTTPS_PROXY": "http://me:hu%2Fsh@proxy.invalid:3128", "no_proxy": "a@b"})
    scrubbed = secrets.scrub(text)
    assert "***" in scrubbed
    assert not any(part in scrubbed for part in ("hu/sh", "hu%2F", b64encode(b"me:hu/sh").decode()))


def test_repr_of_secrets_shows_no_secret() -> None:
    assert "hush" not in repr(_knowing("hush-hush-hush"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:hush@x.invalid/a?token=hush#hush", "https://x.invalid/a"),
        ("/v1/chat?x=hush", "/v1/chat"),
        ("http://[hush", "***"),
    ],
)
def test_url_is_shown_without_credentials_query_and_fragment(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "name", ["Authorization", "api-key", "X-Api-Key", "Cookie", "x-auth", "X-Token", "sig"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name", ["HTTP-Referer", "X-Title", "anthropic-beta", "X-Author", "api-version", "max_tokens"]
)
def test_names_of_other_things_are_not_taken_for_secrets(name: str) -> None:
    assert not looks_secret(name)
