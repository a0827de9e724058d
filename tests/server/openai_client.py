"""OpenAI's client, as a server's tests use it."""

from __future__ import annotations

from openai import OpenAI


def client(url: str, key: str = "none") -> OpenAI:
    """A client of the server at `url`, without retries."""
    return OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
