"""The engines by the names of resolved settings, which are never "auto". Opening one loads torch, and TRL for trl."""

from __future__ import annotations

from podium.train.engine import SupervisedJob, TrainingEngine, TrainingJob
from podium.train.ranks import Ranks
from podium.train.settings import EngineName, TrainSettings


def open_ranks(settings: TrainSettings) -> Ranks:
    """The processes that train together: one process, or with TRL those of `accelerate launch`.

    Raises:
        ConfigError: a setting of the ranks cannot be used.
    """
    if settings.engine != "trl":
        return Ranks()
    from podium.train.trl.ranks import open_accelerated_ranks  # noqa: PLC0415 - loads accelerate

    return open_accelerated_ranks(settings)


def open_engine(name: EngineName) -> TrainingEngine[TrainingJob]:
    """The engine of this name for GRPO."""
    if name == "trl":
        from podium.train.trl import engine as trl  # noqa: PLC0415 - loads TRL

        return trl
    from podium.train.shared_prefix import engine as shared_prefix  # noqa: PLC0415 - loads torch

    return shared_prefix


def open_supervised_engine(name: EngineName) -> TrainingEngine[SupervisedJob]:
    """The engine of this name for the supervised stage."""
    if name == "trl":
        from podium.train.trl import sft as trl  # noqa: PLC0415 - loads TRL

        return trl
    from podium.train.shared_prefix import sft as shared_prefix  # noqa: PLC0415 - loads torch

    return shared_prefix
