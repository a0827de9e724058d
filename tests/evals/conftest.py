"""A small pool and questions that it answers."""

import pytest

from podium.workers.pool import Pool
from scripted_team import SKILLS, Sums, calculator


@pytest.fixture(scope="session")
def specialists() -> Pool:
    """Two that know half of the skills each, and one that is middling at all and dear."""
    return Pool(
        [
            calculator("left", *SKILLS[:2], price=1.0, rest=0.1),
            calculator("right", *SKILLS[2:], price=1.0, rest=0.1),
            calculator("all", price=4.0, rest=0.7),
        ]
    )


@pytest.fixture(scope="session")
def tasks():
    return list(Sums("test", 60))
