"""Tells an update that diverged from one that a gradient scaler skipped, for both engines and both stages."""

from __future__ import annotations

import math
from collections.abc import Mapping

from podium.errors import DivergedError


def refuse_divergence(update: str, figures: Mapping[str, float], lower: str) -> None:
    """Refuse the figures of an update that are not finite, before its row or a checkpoint is written.

    Args:
        update: the iteration or the step, in words.
        lower: the setting to lower.

    Raises:
        DivergedError: a figure is not finite.
    """
    for name, value in figures.items():
        if not math.isfinite(value):
            raise DivergedError(
                f"{update}: {name} is {value}, so the training has diverged, and nothing of this update is kept. "
                f"Lower {lower}, and train in a new folder."
            )


def applied_norm(norm: float, *, scaled: bool) -> float:
    """The norm of the gradient that an update applied.

    It is 0 where the gradient scaler of float16 skipped an update, since its gradient was not finite at this scale.
    """
    return 0.0 if scaled and not math.isfinite(norm) else norm
