"""A small world that is real: specialists over embedded tasks."""

import pytest
from made import specialist

from podium.lab import SKILLS
from podium.tasks.embedded import EmbeddedTasks
from podium.workers.pool import Pool


@pytest.fixture(scope="session")
def specialists() -> Pool:
    """Two that know half of the skills each, and one that is middling at all and dear."""
    return Pool(
        [
            specialist("left", SKILLS[: len(SKILLS) // 2], 1.0),
            specialist("right", SKILLS[len(SKILLS) // 2 :], 1.0),
            specialist("all", (), 4.0, rest=0.7),
        ]
    )


@pytest.fixture(scope="session")
def tasks():
    return list(EmbeddedTasks("test", 60))


@pytest.fixture(scope="session")
def tuning():
    return list(EmbeddedTasks("validation", 40))
