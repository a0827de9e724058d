"""A sentence encoder behind an OpenAI-compatible endpoint: texts to vectors of length 1, for learned routers.

It sends texts in batches, each text once, and retries what may succeed later. Vectors are kept in memory alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from podium.errors import ConfigError, WorkerError
from podium.types import Limits
from podium.workers.redaction import read_key
from podium.workers.retry import attempts

if TYPE_CHECKING:
    from podium.workers.chat.embeddings import EmbeddingClient

Floats = npt.NDArray[np.float64]
_BATCH = 64
"""Texts of a request: few enough for any server's limits, and enough that their number costs no time."""
_LONGEST_WAIT_S = 30.0
"""A server that asks for a longer wait than this is an error."""


@dataclass(frozen=True)
class Encoded:
    """The vectors of some texts."""

    model: str
    vectors: Mapping[str, Floats]
    """[D] of each text, of length 1."""


class Encoder:
    """One embedding model behind an endpoint.

    Args:
        client: posts to the endpoint.
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
                raise self._wrong(f"gave vectors of {size} and then of {vectors_ND.shape[1]} numbers")
            size = vectors_ND.shape[1]
            length_N = np.linalg.norm(vectors_ND, axis=1)
            if not (np.isfinite(length_N).all() and length_N.all()):
                raise self._wrong("gave a vector without a direction")
            vectors.update(zip(batch, vectors_ND / length_N[:, None], strict=True))
            if on_progress is not None:
                on_progress(len(vectors), len(wanted))
        return Encoded(self.model, vectors)

    async def close(self) -> None:
        """Give back the connections."""
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
    """The encoder behind an endpoint; it is the caller's to close.

    Args:
        url: up to and without /embeddings.
        key_env: the environment variable that holds the key; None: no key is sent.
        option_name: from a key, such as encoder_url, to the name that messages use for it.

    Raises:
        ConfigError: the key is not there, or the URL is none.
    """
    from podium.workers.chat.embeddings import EmbeddingClient  # noqa: PLC0415 - loads the HTTP client

    key = None if key_env is None else read_key(key_env, option_name("encoder_key_env"))
    try:
        return Encoder(EmbeddingClient(url, key), model)
    except ConfigError as error:
        raise ConfigError(f"{option_name('encoder_url')}: {error}") from None
