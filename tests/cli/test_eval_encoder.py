"""`podium eval` on a recording with a sentence encoder: two rows more, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from refusal import one_sentence
from small_recording import record_small

from embedding_server import EmbeddingServer, embedding_server, reply
from podium.evals import Comparison

Podium = Callable[..., Any]
EVAL = ("eval", "--tasks", "rec.parquet", "--pool", "replay.toml")
POOL = """
[[worker]]
name = "ada"
kind = "replay"
recording = "rec.parquet"

[[worker]]
name = "bob"
kind = "replay"
recording = "rec.parquet"
"""


@pytest.fixture(autouse=True)
def _recording() -> None:
    """12 questions, of which ada knows the even ones and bob the odd ones."""
    knows = {"ada": lambda number: number % 2 == 0, "bob": lambda number: number % 2 == 1}
    record_small(Path("rec.parquet"), knows, questions=12, train=6, output_tokens=40)
    Path("replay.toml").write_text(POOL)


@pytest.fixture
def parity() -> Iterator[EmbeddingServer]:
    """Embeds whether the number is even."""

    def embed(texts: list[str]) -> dict[str, Any]:
        return reply([[7.0 * (int(text.split()[1]) % 2), 5.0] for text in texts])

    with embedding_server(embed) as server:
        yield server


def test_routers_over_the_encoder_have_rows_of_their_own(podium: Podium, parity: EmbeddingServer) -> None:
    shown = podium(*EVAL, "--encoder-url", parity.url, "--encoder-model", "minilm", "--json")
    assert (shown.status, shown.err) == (0, "")
    rows = {row.label: row.accuracy.mean for row in Comparison.model_validate_json(shown.out).rows}
    assert (
        rows["Ridge over minilm, best worker"] == rows["20 nearest questions over minilm, best worker"] == 1
    )
    assert rows["Ridge over n-grams, best worker"] < 1
    assert "20 nearest questions, best worker" in rows
    assert sorted(parity.texts) == sorted(f"Is {number} right?" for number in range(12))
    assert set(parity.keys) == {None}
    plain = podium(*EVAL, "--json")
    labels = [row.label for row in Comparison.model_validate_json(plain.out).rows]
    assert labels == [label for label in rows if "minilm" not in label]


def test_an_encoder_that_fails_is_reported_before_anything_is_run(podium: Podium) -> None:
    with embedding_server(lambda texts: 400) as server:
        shown = podium(*EVAL, "--encoder-url", server.url, "--encoder-model", "m", "--run", "kept/r")
    assert (shown.status, shown.out) == (1, "")
    assert shown.err == f"podium: {server.url}: status 400: Not today.\n"
    assert not Path("kept/r/comparison.json").exists()


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (("--encoder-url", "http://x/v1"), "An encoder needs both --encoder-url and --encoder-model."),
        (("--encoder-model", "m"), "An encoder needs both --encoder-url and --encoder-model."),
        (
            ("--encoder-url", "http://x/v1", "--encoder-model", "m", "--tasks", "embedded"),
            "--encoder-url is only for routers that learn from a recording; leave it out.",
        ),
        (
            ("--encoder-url", "http://x/v1", "--encoder-model", "m", "--replay", "--cache", "c.sqlite"),
            "--replay makes no calls, and --encoder-url does; leave one of them out.",
        ),
        (("--encoder-url", "nowhere", "--encoder-model", "m"), "--encoder-url: base_url 'nowhere'"),
        (
            ("--encoder-url", "http://x/v1", "--encoder-model", "m", "--encoder-key-env", "NO_KEY"),
            "--encoder-key-env: the environment variable NO_KEY is not set",
        ),
    ],
)
def test_asking_wrongly_for_an_encoder_is_one_sentence(
    podium: Podium, tokens: tuple[str, ...], sentence: str
) -> None:
    given = [part for part in EVAL if part not in ("--tasks", "rec.parquet") or "--tasks" not in tokens]
    assert sentence in one_sentence(podium(*given, *tokens))
