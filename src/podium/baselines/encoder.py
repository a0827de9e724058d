"""Text encoders: they turn texts into vectors of length 1 for learned routers.

An `Encoder` is a model behind an OpenAI-compatible endpoint: each different text is sent once, in batches, with
retries. `sentence_vectors` runs a sentence-transformers model in this process. Vectors are kept only in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from podium.baselines.scored import Floats, Vectors
from podium.errors import ConfigError, WorkerError
from podium.types import Limits
from podium.workers.redaction import read_key
from podium.workers.retry import attempts

if TYPE_CHECKING:
    from podium.workers.chat.embeddings import EmbeddingClient

_BATCH = 64
"""How many texts are in a request: within the limits of any server, and enough that requests add little time."""
_LONGEST_WAIT_S = 30.0
"""If a server wants us to wait longer before a retry, encoding fails."""


@dataclass(frozen=True)
class Encoded:
    """The vectors of some texts."""

    model: str
    vectors: Mapping[str, Floats]
    """[D] of each text, of length 1."""

    def of(self, texts: Sequence[str]) -> Floats:
        """[N, D]: the vectors of these texts, each of which was encoded."""
        return np.stack([self.vectors[text] for text in texts])


class Encoder:
    """One embedding model behind an endpoint.

    Args:
        client: the client of the endpoint.
        model: the endpoint's name for the model.
        limits: time limit of a request, and retries.
    """

    def __init__(self, client: EmbeddingClient, model: str, *, limits: Limits | None = None) -> None:
        self.model = model
        self._client = client
        self._limits = limits or Limits()

    async def encode(
        self, texts: Iterable[str], on_progress: Callable[[int, int], None] | None = None
    ) -> Encoded:
        """A vector for each different text.

        Args:
            on_progress: called with (texts done, all texts).

        Raises:
            WorkerError: the endpoint did not answer, after all retries, or its vectors cannot be used.
        """
        wanted = list(dict.fromkeys(texts))
        vectors: dict[str, Floats] = {}
        size: int | None = None
        for start in range(0, len(wanted), _BATCH):
            batch = wanted[start : start + _BATCH]
            vectors_ND = np.array(await self._embed(batch), dtype=np.float64)
            if size not in (None, vectors_ND.shape[1]):
                raise self._wrong(f"returned vectors of {size} and then of {vectors_ND.shape[1]} numbers")
            size = vectors_ND.shape[1]
            length_N = np.linalg.norm(vectors_ND, axis=1)
            if not (np.isfinite(length_N).all() and length_N.all()):
                raise self._wrong("returned a vector that is zero or not finite")
            vectors.update(zip(batch, vectors_ND / length_N[:, None], strict=True))
            if on_progress is not None:
                on_progress(len(vectors), len(wanted))
        return Encoded(self.model, vectors)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _embed(self, texts: list[str]) -> list[list[float]]:
        async for attempt in attempts(self._limits.retries, longest_s=_LONGEST_WAIT_S):
            with attempt:
                found = await self._client.embed(texts, model=self.model, timeout=self._limits.timeout)
        return found

    def _wrong(self, what: str) -> WorkerError:
        return WorkerError(f"{self._client.base_url}: {self.model} {what}.", kind="protocol")


def open_encoder(
    url: str, model: str, *, key_env: str | None = None, option_name: Callable[[str], str] = str
) -> Encoder:
    """Open the encoder behind an endpoint. The caller closes it.

    Args:
        url: the endpoint's URL without /embeddings.
        key_env: the environment variable with the API key; None: no key is sent.
        option_name: returns the name that messages use for a setting, such as encoder_url.

    Raises:
        ConfigError: the variable is not set, or the URL is not valid.
    """
    from podium.workers.chat.embeddings import EmbeddingClient  # noqa: PLC0415 - loads the HTTP client

    key = None if key_env is None else read_key(key_env, option_name("encoder_key_env"))
    try:
        return Encoder(EmbeddingClient(url, key), model)
    except ConfigError as error:
        raise ConfigError(f"{option_name('encoder_url')}: {error}") from None


def sentence_vectors(model: str) -> Vectors:
    """Load a sentence-transformers model, by its name on the Hugging Face hub or its folder.

    Raises:
        ConfigError: sentence-transformers is not installed, or the model cannot be loaded.
    """
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - an optional extra, which loads torch
    except ImportError:
        raise ConfigError(
            f"The vectors of {model!r} need sentence-transformers, which is not installed: "
            "pip install 'podium-conductor[vectors]'."
        ) from None
    try:
        loaded = SentenceTransformer(model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ConfigError(f"The text encoder {model!r} cannot be loaded: {reason}") from error
    return lambda texts: np.asarray(
        loaded.encode(list(texts), normalize_embeddings=True, show_progress_bar=False), dtype=np.float64
    )
