"""Fixtures for tests of several packages: small recordings, which are really written and read, and a real
PostgreSQL."""

from __future__ import annotations

from process_settings import pytest_collection_finish  # isort: skip - before NumPy

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from podium.recordings import RecordedQuestion, RecordedResponse, Recording, RecordingWriter
from postgres_server import PostgresServer

__all__ = ["pytest_collection_finish"]

MakeRecording = Callable[..., Recording]
_DATA = pytest.StashKey[str]()
"""The folder that holds the data folder of each test."""


@pytest.fixture
def make_recording(tmp_path: Path) -> MakeRecording:
    """A function `make_recording({question: [response, ...]}, ...)`. Question k has the id "q<k>"."""

    def make(
        given: Mapping[str, Sequence[RecordedResponse]],
        *,
        name: str = "small",
        golds: Mapping[str, str] | None = None,
        splits: Mapping[str, str] | None = None,
        folder: Path = tmp_path,
    ) -> Recording:
        path = folder / f"{name}.parquet"
        with RecordingWriter() as writer:
            for number, (text, responses) in enumerate(given.items()):
                writer.add_question(
                    RecordedQuestion(
                        f"q{number}", text, (golds or {}).get(text), "sums", (splits or {}).get(text, "test")
                    )
                )
                for response in responses:
                    writer.add(f"q{number}", response)
            writer.write(path, name=name)
        return Recording.open(path)

    return make


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests of a process; for those alone that `DATABASES` of postgres_server says can run."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The address of a new, empty database."""
    return postgres_server.new_database()


def pytest_configure(config: pytest.Config) -> None:
    data = TemporaryDirectory(prefix="podium-tests-data-")
    config.stash[_DATA] = data.name
    config.add_cleanup(data.cleanup)


# A hook and no fixture, which would take a fifth of the time of a small test.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What Podium keeps of an endpoint by its URL is of this test alone: a later server may get the same port."""
    name = sha256(item.nodeid.encode()).hexdigest()[:16]
    os.environ["XDG_DATA_HOME"] = str(Path(item.config.stash[_DATA], name))
