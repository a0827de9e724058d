"""The engines by the names of resolved settings, which are never "auto". Opening one loads torch, and TRL for trl."""

from __future__ import annotations

from podium.train.engine import SupervisedJob, TrainingEngine, TrainingJob
from podium.train.settings import EngineName


def open_engine(name: EngineName) -> TrainingEngine[TrainingJob]:
    """The engine of this name for GRPO."""
    assert name != "auto"
    if name == "trl":
        from podium.train.trl import engine as trl  # noqa: PLC0415 - loads TRL

        return trl
    from podium.train.shared_prefix import engine as shared_prefix  # noqa: PLC0415 - loads torch

    return shared_prefix


def open_supervised_engine(name: EngineName) -> TrainingEngine[SupervisedJob]:
    """The engine of this name for the supervised stage."""
    assert name != "auto"
    if name == "trl":
        from podium.train.trl import sft as trl  # noqa: PLC0415 - loads TRL

        return trl
    from podium.train.shared_prefix import sft as shared_prefix  # noqa: PLC0415 - loads torch

    return shared_prefix
