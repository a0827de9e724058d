"""Every configuration and pool that comes with Podium can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from podium.config import load
from podium.recordings.importers import Mapping
from podium.train.experiment import Experiment
from podium.train.warmstart.pretraining import WarmStartSettings
from podium.workers.pool import load_pool, open_pool
from podium.workers.spec import PoolSpec, ReplaySpec

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.toml"))
REPLAY_POOLS = sorted((CONFIGS[0].parent / "pools").glob("*.toml"))
MAPPINGS = sorted((CONFIGS[0].parent / "recordings").glob("*.toml"))
POOLS = sorted((Path(podium.__file__).parent / "assets" / "pools").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_configuration_loads(path: Path) -> None:
    load(path, WarmStartSettings if path.stem.startswith(("warmstart", "taught")) else Experiment)


@pytest.mark.parametrize("path", REPLAY_POOLS, ids=lambda path: path.stem)
def test_every_recorded_pool_can_be_read_and_takes_a_recording_that_a_mapping_makes(path: Path) -> None:
    spec = load(path, PoolSpec)
    made = {load(mapping, Mapping).name for mapping in MAPPINGS}
    replayed = [worker for worker in spec.worker if isinstance(worker, ReplaySpec)]
    assert {worker.recording.stem for worker in replayed} <= made
    assert len({worker.name for worker in spec.worker}) == len(spec.worker) == len(replayed) + 1


@pytest.mark.parametrize("path", POOLS, ids=lambda path: path.stem)
def test_every_pool_loads_by_file_and_by_name(path: Path) -> None:
    assert load_pool(path).names == open_pool(path.stem).names


def test_the_long_run_s_random_pools_hold_out_workers_whose_words_others_use() -> None:
    experiment = load(next(path for path in CONFIGS if path.stem == "random-pools"), Experiment)
    pool = open_pool(experiment.pool)
    held_out = set(experiment.pool_draw.without)
    known = {word for p in pool.profiles if p.name not in held_out for word in p.description.split()}
    assert len(pool) - len(held_out) >= 12
    for name in held_out:
        words = {word.strip(",") for word in pool.named(name).profile.description.split()}
        assert words <= {word.strip(",") for word in known}
