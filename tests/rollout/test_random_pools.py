"""Pools for training: the whole one, or random parts without those that are held out."""

from __future__ import annotations

import pytest

from podium.errors import ConfigError
from podium.rollout.random_pools import PoolDraw, PoolSource
from podium.workers import Pool, ScriptedWorker

POOL = Pool([ScriptedWorker(name, []) for name in ("ada", "bram", "cleo", "dora", "egon")])


def test_a_fixed_pool_is_the_file_s() -> None:
    assert PoolSource(POOL, PoolDraw()).draw("any").names == POOL.names


def test_a_random_pool_is_a_part_in_some_order_and_its_name_s_own() -> None:
    source = PoolSource(POOL, PoolDraw(random=True, least=2, most=4))
    drawn = [source.draw(str(i)).names for i in range(200)]
    assert drawn[7] == source.draw("7").names
    assert {len(names) for names in drawn} == {2, 3, 4}
    assert {names[0] for names in drawn} == set(POOL.names)


def test_who_is_held_out_is_never_drawn() -> None:
    source = PoolSource(POOL, PoolDraw(random=True, least=2, most=3, without=("cleo",)))
    assert all("cleo" not in source.draw(str(i)).names for i in range(200))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            PoolDraw(without=("clio",)),
            "pool_draw.without names 'clio', which is not in the pool; did you mean 'cleo'?",
        ),
        (
            PoolDraw(random=True, least=4, most=6),
            "Random pools of 4 to 6 cannot be drawn from 5 workers; set pool_draw.least and pool_draw.most to fit.",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings: PoolDraw, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        PoolSource(POOL, settings)
    assert str(error.value) == message
