"""Documents that show pool files: what they show can be used, and names every kind and key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from podium.config import build
from podium.errors import ConfigError
from podium.team.settings import TeamSettings, TeamSpec
from podium.types import Limits, Price
from podium.workers.build import BUILT_IN, INSTALLED_KINDS, UnreadyWorker
from podium.workers.pool import Pool
from podium.workers.spec import LocalSpec, WorkerSpec, with_workers

ROOT = Path(__file__).parent.parent
WORKERS = ROOT / "docs" / "workers.md"
SHOWN = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in (ROOT / "README.md", ROOT / "docs" / "quickstart.md", ROOT / "docs" / "team.md", WORKERS)
    for number, block in enumerate(
        re.findall(r"```toml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    )
    if "[[worker]]" in block
]
SPECS: list[type[WorkerSpec]] = [
    *(kind.spec for kind in BUILT_IN.values()),
    TeamSpec,
    LocalSpec,
    *(kind.spec for _, kind in INSTALLED_KINDS.items()),
]


@pytest.mark.parametrize("block", SHOWN)
def test_every_pool_file_that_is_shown_can_be_used(block: str) -> None:
    spec = build(tomllib.loads(block), with_workers(TeamSettings, SPECS))
    assert Pool([UnreadyWorker(worker, ConfigError("Only shown.")) for worker in spec.worker])


def test_there_are_pool_files_to_show() -> None:
    assert len(SHOWN) >= 12


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.__name__)
def test_every_kind_and_every_key_of_a_worker_is_documented(spec: type[WorkerSpec]) -> None:
    told = WORKERS.read_text(encoding="utf-8")
    (kind,) = get_args(spec.model_fields["kind"].annotation)
    assert f"`{kind}`" in told
    assert set(spec.model_fields) <= set(re.findall(r"`(\w+)`", told))


@pytest.mark.parametrize("part", [Limits, Price], ids=lambda part: part.__name__)
def test_every_limit_and_every_price_is_documented_with_its_default(part: type[BaseModel]) -> None:
    told = WORKERS.read_text(encoding="utf-8")
    for name, field in part.model_fields.items():
        if part is Limits:
            (default,) = re.findall(rf"^\| `{name}` \| (\S+) \|", told, re.MULTILINE)
            assert field.default == (None if default == "none" else float(default)), name
        else:
            assert f"{name} = " in told


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src/podium/assets/pools").glob("*.toml")), ids=lambda p: p.stem
)
def test_every_pool_that_ships_is_documented(path: Path) -> None:
    assert f"`{path.stem}`" in WORKERS.read_text(encoding="utf-8")
