"""A server that fails as real endpoints do, for tests of pools and of programs that call models.

`FaultServer` runs in a test's own event loop, in a thread, or as `python -m podium_testing RULES.toml`.
"""

from podium_testing import faults
from podium_testing.capable import capable
from podium_testing.completion import Answer, PromptCache
from podium_testing.exchange import Minute, Received, most_at_once, worst_minute
from podium_testing.faults import *  # noqa: F403 - those that `faults` lists
from podium_testing.rule import Rule
from podium_testing.server import FaultServer
from podium_testing.swapped_models import SwappedModels

__all__ = [
    "Answer",
    "FaultServer",
    "Minute",
    "PromptCache",
    "Received",
    "Rule",
    "SwappedModels",
    "capable",
    "most_at_once",
    "worst_minute",
]
__all__ += faults.__all__
