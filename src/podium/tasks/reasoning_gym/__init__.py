"""The library reasoning-gym, run in processes of its own: it makes questions and verifies answers to them.

Some generators depend on the hash seed or on Python's global random state, one runs programs that the library ships,
and some verifiers evaluate what a model wrote. So the library never runs in our process. `process_pool` starts and
keeps the processes (`process`), which have a fixed hash seed and limited time and memory; `answer_rules` refuses
answers that a verifier would take too lightly. Other packages use the pool alone.
"""

from podium.tasks.reasoning_gym.process_pool import (
    GeneratedSample,
    GeneratorConfig,
    ReasoningGymPool,
    SampleId,
    text_digest,
)

__all__ = ["GeneratedSample", "GeneratorConfig", "ReasoningGymPool", "SampleId", "text_digest"]
