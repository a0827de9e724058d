"""Figures of collapse."""

from __future__ import annotations

from math import log

import pytest

from podium.train.metrics import alarms, entropy, variety


def test_equal_shares_have_the_logarithm_of_their_number() -> None:
    assert entropy("abab") == pytest.approx(log(2))
    assert entropy("aaaa") == entropy("") == 0.0


def test_variety_counts_workers_by_step_and_shapes_by_plan() -> None:
    chain, alone = (("ada", "bram"), "-;0"), (("ada",), "-")

    figures = variety([chain, chain, chain, alone])

    assert figures["commonest_plan"] == 0.75
    assert figures["topology_entropy"] == pytest.approx(entropy("cccs"))
    assert figures["worker_entropy"] == pytest.approx(entropy("aaaabbb"))


def test_an_alarm_says_what_collapsed() -> None:
    assert alarms({"commonest_plan": 0.5, "zero_variance_groups": 0.5, "unreadable": 0.1}) == []
    assert alarms({"commonest_plan": 0.97}) == [
        "97% of the readable plans name the same workers in the same topology."
    ]
