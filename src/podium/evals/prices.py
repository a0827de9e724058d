"""Prices by which the executor asks the cheapest first, for plans whose cost is counted and not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.executor.early_stopping import known_costs
from podium.ratings.answers import Floats, Members
from podium.types import Profile


@dataclass(frozen=True)
class Prices:
    """Of Q questions and W workers."""

    measured_QW: Floats
    """Dollars an answer; NaN: the worker was not measured."""
    listed_QW: Floats
    """Without measurements; comparable with each other alone."""

    @classmethod
    def told(cls, profiles_QW: Sequence[Sequence[Profile]]) -> Prices:
        """Of what profiles say for each question."""
        return cls(
            np.array([[_measured(profile) for profile in profiles] for profiles in profiles_QW]),
            np.array([known_costs([_unrated(profile) for profile in profiles]) for profiles in profiles_QW]),
        )

    def among(self, members: Members) -> Floats:
        """[Q, W]: those by which one vote compares its own voters, be they measured or, where one was not, listed."""
        unknown_Q1 = np.isnan(self.measured_QW[:, members]).any(axis=1, keepdims=True)
        chosen: Floats = np.where(unknown_Q1, self.listed_QW, self.measured_QW)
        return chosen


def _measured(profile: Profile) -> float:
    return float("nan") if profile.rating is None else profile.rating.cost_usd


def _unrated(profile: Profile) -> Profile:
    return profile.model_copy(update={"rating": None})
