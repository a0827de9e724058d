"""Documents: what they show can be used, they name every kind and key, and what they name of the code is there."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from podium.config import build
from podium.errors import ConfigError
from podium.rollout.pool_sampling import PoolSampling
from podium.team.settings import (
    EvalSettings,
    PlanSettings,
    ServeSettings,
    TeamBudget,
    TeamSettings,
    TeamWorkerSpec,
)
from podium.types import Limits, Price
from podium.workers.build import BUILT_IN, INSTALLED_KINDS, UnavailableWorker
from podium.workers.pool import Pool
from podium.workers.spec import LocalSpec, WorkerSpec

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
    TeamWorkerSpec,
    LocalSpec,
    *(kind.spec for _, kind in INSTALLED_KINDS.items()),
]


@pytest.mark.parametrize("block", SHOWN)
def test_every_pool_file_that_is_shown_can_be_used(block: str) -> None:
    spec = build(tomllib.loads(block), TeamSettings)
    assert Pool([UnavailableWorker(worker, ConfigError("Only shown.")) for worker in spec.worker])


def test_documents_show_at_least_twelve_pool_files() -> None:
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
    ("table", "page"),
    [
        (ServeSettings, "team.md"),
        (PlanSettings, "team.md"),
        (TeamBudget, "team.md"),
        (EvalSettings, "team.md"),
        (PoolSampling, "training.md"),
    ],
)
def test_every_key_of_a_table_is_on_the_page_of_the_table(table: type[BaseModel], page: str) -> None:
    told = set(re.findall(r"`([\w.]+)`", (ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert set(table.model_fields) - told == set()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src/podium/assets/pools").glob("*.toml")), ids=lambda p: p.stem
)
def test_every_pool_that_ships_is_documented(path: Path) -> None:
    assert f"`{path.stem}`" in WORKERS.read_text(encoding="utf-8")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one, or something in a class of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
            continue
        for attribute in parts[end:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


PROSE = (
    "README.md",
    "AGENTS.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "lab/*.md",
    "research/docs/*.md",
    "testing/*.md",
)


def test_every_code_name_in_a_document_exists() -> None:
    code = tracked("src/*.py", "lab/src/*.py", "research/src/*.py", "testing/src/*.py")
    groups = {
        name for path in code for name in re.findall(r'"(podium\.\w+)"', path.read_text(encoding="utf-8"))
    }
    prose = tracked(*PROSE)
    elsewhere = {
        "podium.json",
        "podium.ignored",
        "podium.dry_run",
    }  # A file, and fields of the server's replies.
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*prose, *code]
        for name in re.findall(
            r"`(?:python -m )?(podium(?:_lab|_research|_testing)?(?:\.\w+)+)[`( ]",
            path.read_text(encoding="utf-8"),
        )
        if name not in groups | elsewhere and not is_there(name)
    ]
    assert missing == []


def test_every_python_file_that_a_document_names_is_there() -> None:
    prose = tracked(*PROSE)
    folders = (
        "",
        "src",
        "src/podium",
        "lab",
        "lab/src/podium_lab",
        "research",
        "research/src/podium_research",
        "testing/src/podium_testing",
    )
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in prose
        for name in re.findall(r"(?<![\w/.{-])((?:[\w-]+/)+\w+\.py)\b", path.read_text(encoding="utf-8"))
        if not any(
            (place / name).is_file() for place in (path.parent, *(ROOT / folder for folder in folders))
        )
    ]
    assert missing == []


def test_the_drawing_of_the_layers_has_every_package_and_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = page.split("## The layers")[1].split("```")[1]
    root = ROOT / "src" / "podium"
    modules = {path.stem for path in root.glob("*.py") if not path.stem.startswith("__")}
    packages = {path.parent.name for path in root.glob("*/__init__.py")}
    assert modules | packages <= set(re.findall(r"\w+", drawing))


def test_the_table_of_entry_points_has_every_group() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in tracked("src/*.py"))
    groups = set(re.findall(r'(?:PluginGroup\[.+\]\(|group=)"(podium\.\w+)"', code))
    assert len(groups) >= 11
    assert groups <= set(re.findall(r"`(podium\.\w+)`", page))
