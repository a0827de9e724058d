"""The library reasoning-gym, in processes of its own: it makes questions, and verifies answers to them.

Some of its generators depend on the hash seed or on the chance of all of Python, one runs programs that it ships, and
some of its verifiers evaluate what a model wrote. So it never runs beside us: `pool` keeps processes (`child`) with
a fixed hash seed and limited means (`limits`), and there `library` does what an `request` says, under the rules of
`strict`. Graders and task sets know the workshop alone.
"""

from podium.tasks.reasoning_gym.process_pool import (
    GeneratedSample,
    GeneratorConfig,
    ReasoningGymPool,
    SampleId,
    text_digest,
)

__all__ = ["GeneratedSample", "GeneratorConfig", "ReasoningGymPool", "SampleId", "text_digest"]
