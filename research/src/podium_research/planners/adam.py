"""Adam (Kingma & Ba 2015) for the few planners that are trained in NumPy, without torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.planners.answer_matrix import Floats


class Adam:
    """Changes `parameters` in place, one step at a time.

    Args:
        rate: the step size.
    """

    def __init__(self, parameters: Sequence[Floats], rate: float) -> None:
        self._rate = rate
        self._steps = 0
        # Of each parameter: itself, and the running means of its gradient and of the gradient's square.
        self._state = [
            (parameter, np.zeros_like(parameter), np.zeros_like(parameter)) for parameter in parameters
        ]

    def step(self, gradients: Sequence[Floats]) -> None:
        """One step down the gradients, which have the parameters' order and shapes."""
        self._steps += 1
        for (parameter, mean, square), gradient in zip(self._state, gradients, strict=True):
            mean[:] += 0.1 * (gradient - mean)
            square[:] += 0.001 * (gradient**2 - square)
            step = self._rate * mean / (1 - 0.9**self._steps)
            parameter[:] -= step / (np.sqrt(square / (1 - 0.999**self._steps)) + 1e-8)
