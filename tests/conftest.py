"""Small recordings, written and opened as any other, for tests of whatever reads one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from podium.recordings import Gathering, RecordedQuestion, Recording, Response

MakeRecording = Callable[..., Recording]


@pytest.fixture
def make_recording(tmp_path: Path) -> MakeRecording:
    """`make_recording({question: [response, ...]}, ...)`: question k has the id "q<k>" and, if told, a gold answer."""

    def make(
        given: Mapping[str, Sequence[Response]],
        *,
        name: str = "small",
        golds: Mapping[str, str] | None = None,
        splits: Mapping[str, str] | None = None,
        folder: Path = tmp_path,
    ) -> Recording:
        path = folder / f"{name}.parquet"
        with Gathering() as gathering:
            for number, (text, responses) in enumerate(given.items()):
                gathering.add_question(
                    RecordedQuestion(
                        f"q{number}", text, (golds or {}).get(text), "sums", (splits or {}).get(text, "test")
                    )
                )
                for response in responses:
                    gathering.add(f"q{number}", response)
            gathering.write(path, name=name)
        return Recording.open(path)

    return make
