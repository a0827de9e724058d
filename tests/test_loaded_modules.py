"""What is loaded late: one process does more and more, and what costs time or an extra is loaded by what needs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STEPS: dict[str, tuple[str, ...]] = {
    "import podium": ("aiohttp", "numpy", "pydantic", "torch", "transformers"),
    "from podium.cli import run; run(['--help'])": ("aiohttp", "numpy", "pydantic", "torch", "transformers"),
    "import podium.plugin_api.planners, podium.plugin_api.workers": (
        "aiohttp",
        "numpy",
        "podium.scoring",
        "podium.tasks",
    ),
    "import podium.cli.traces": ("numpy", "podium.executor", "podium.tasks"),
    "import podium.cli.ask": ("numpy", "podium.tasks"),
    "import podium.conductor": ("aiohttp", "numpy", "tokenizers", "torch", "transformers"),
    "run(['ask', 'Q?', '--pool', 'pool.toml', '--planner', 'constant:plan.txt'])": (
        "aiohttp",
        "numpy",
        "torch",
        "transformers",
    ),
    "import podium.cli.serve": ("numpy", "podium.tasks"),
    "import podium.cli.app, podium.library": ("inspect_ai",),
    "import podium.tasks.sets.registry": (
        "huggingface_hub",
        "inspect_ai",
        "math_verify",
        "pyarrow",
        "reasoning_gym",
        "sympy",
        "torch",
    ),
    "import podium.train.settings, podium.train.progress, podium.train.runtime": ("torch", "transformers"),
}
"""Each, after those before it, with what it does not load."""
PROGRAM = """
import json, sys
names, loaded = {}, []
for step in json.loads(sys.argv[1]):
    exec(step, names)
    loaded.append(list(sys.modules))
with open("loaded.json", "w") as file:
    json.dump(loaded, file)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The modules that are loaded after each step."""
    folder: Path = tmp_path_factory.mktemp("loaded")
    (folder / "pool.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = ["Answer: 5"]\n'
    )
    (folder / "plan.txt").write_text('model_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]\n')
    subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(list(STEPS))], check=True, cwd=folder)
    return dict(zip(STEPS, json.loads((folder / "loaded.json").read_text()), strict=True))


@pytest.mark.parametrize("step", STEPS)
def test_a_step_loads_nothing_that_it_does_not_use(loaded: dict[str, list[str]], step: str) -> None:
    assert [name for name in STEPS[step] if name in loaded[step]] == []


def test_help_loads_few_modules(loaded: dict[str, list[str]]) -> None:
    # What it loads is what it takes: 325 modules, a quarter of a second.
    assert len(next(names for step, names in loaded.items() if "--help" in step)) <= 340
