"""A served team whose workers follow requests by rules (`podium_testing.capable`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client_team import endpoint, team


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("team")
    rules = folder / "workers.toml"
    rules.write_text("capable = true")
    with endpoint("-m", "podium_testing", str(rules)) as workers, team(folder, workers) as url:
        yield url
