"""Models that were found, and what a model's name says: how many parameters it has, and whether it chats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from podium.types import Price

_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d{1,2})x)?e?(\d{1,4}(?:\.\d{1,3})?) ?([bmt])(?![a-z0-9])")
_OPENROUTER = "openrouter.ai"
_UNIT = {"m": 10**6, "b": 10**9, "t": 10**12}
_NO_CHAT = re.compile(
    r"embed|rerank|whisper|minilm|colbert|moderation|transcri|diffusion|text-to-|speech|dall-e|"
    r"(?<![a-z])(?:bge|gte|e5|mxbai|clip|siglip|tts|stt|asr|ocr|guard|shieldgemma|realtime|audio|image|imagen|veo|sora|"
    r"kokoro|bark|parakeet|lyria|aqa|davinci|babbage|flux)(?![a-z])|guard[-:\d]"
)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """One model that chats."""

    id: str
    """The model's name at the endpoint."""
    base_url: str = ""
    server: str = ""
    """The server in words: "Ollama", "llama.cpp", or a provider's name."""
    parameters: int | None = None
    """The number of parameters, from the server or the model's name. None if neither states it."""
    context_tokens: int | None = None
    """The most tokens of a question and its answer together, with the server's present settings."""
    assumed: bool = False
    """Whether `context_tokens` is the server's default, since the model is not loaded and its context is unknown."""
    largest_context: int | None = None
    """The most tokens that the model was made for."""
    concurrency: int = 1
    """How many questions the server answers at once."""
    loaded_at_once: int | None = None
    """How many models the server is set to hold in memory at once. None if not known."""
    sees: bool = False
    calls_tools: bool = True
    thinks: bool = False
    price: Price | None = None
    """Dollars per million tokens. None if the model costs nothing."""
    key_env: str | None = None
    about: str = ""
    """What the model is good at. It is empty if the provider does not say."""

    @property
    def name(self) -> str:
        """The model's name without the folders before it: some servers name a model by the path of its file."""
        return own_name(self.id)

    def worker_table(self, name: str, profile: str) -> dict[str, Any]:
        """The model's `[[worker]]` table in a team file."""
        table: dict[str, Any] = {
            "name": name,
            "kind": "openai",
            "model": self.id,
            "base_url": self.base_url,
            "profile": profile,
            "price": {"input": 0, "output": 0},
        }
        if self.price is not None:
            table["price"] = {"input": self.price.input, "output": self.price.output}
            if _OPENROUTER in self.base_url:
                # OpenRouter may use more expensive hosts than the list names, unless it is told not to.
                max_price = {"prompt": self.price.input, "completion": self.price.output}
                table["extra"] = {"provider": {"max_price": max_price}}
        if self.key_env is not None:
            table["api_key_env"] = self.key_env
        if self.context_tokens is not None:
            table["context_tokens"] = self.context_tokens
        if self.sees:
            table["sees"] = True
        if not self.calls_tools:
            table["calls_tools"] = False
        return table


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One address, and the models that were found there."""

    kind: str
    """The kind of server that answers at the address. If none answers, the kind that usually does."""
    url: str
    models: tuple[FoundModel, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of models that do not chat, or do not run on this machine."""
    problem: str | None = None
    """Why the server lists no models. None if it lists some."""
    answers: bool = True
    is_named: bool = False
    """Whether the caller gave the address."""


def own_name(id_: str) -> str:
    """A model's name without folders, if it is a path; "Qwen/Qwen3-4B" is none."""
    is_path = id_.startswith("/") or id_.casefold().endswith(".gguf")
    return re.split(r"[/\\]", id_.rstrip("/"))[-1] if is_path else id_


def parameters_in(text: str) -> int | None:
    """The number of parameters in a name such as "qwen2.5-coder:1.5b" or a size such as "494.03M". None if there is
    none.

    Of several numbers the largest counts, which is the whole model in Qwen3-30B-A3B. 8x7B means 56 billion.
    """
    sizes = [
        int(times or 1) * round(float(number) * _UNIT[unit])
        for times, number, unit in _SIZE.findall(text.casefold())
    ]
    return max(sizes, default=None)


def is_chat_model(name: str) -> bool:
    """Whether a model of this name chats: no embeddings, rerankers, speech, images or moderation."""
    return _NO_CHAT.search(name.casefold()) is None
