"""The Conductor: the planner whose plans a language model writes."""

from podium.conductor.checkpoint import Checkpoint
from podium.conductor.conductor import Conductor
from podium.conductor.open import open_policy
from podium.conductor.policy import Completion, Sampling
from podium.conductor.prompt import PromptSettings, build_prompt
from podium.conductor.quarantine import QuarantinePlanner

__all__ = [
    "Checkpoint",
    "Completion",
    "Conductor",
    "PromptSettings",
    "QuarantinePlanner",
    "Sampling",
    "build_prompt",
    "open_policy",
]
