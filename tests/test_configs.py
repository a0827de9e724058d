"""Every configuration and pool that comes with Podium can be used."""

from __future__ import annotations

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from trl.trainer.grpo_config import GRPOConfig

import podium
from podium.cli.run_settings import read_run_settings
from podium.config import load
from podium.tasks import open_tasks
from podium.tasks.task_file import read_task_file
from podium.team.settings import TeamSettings
from podium.team.team_file import open_pool
from podium.train.settings import TrainSettings
from podium.train.trl.arguments import trl_arguments
from podium.train.trl.grpo import GRPO_SETTINGS
from podium.train.trl.trainer_setup import lora_config
from podium.types import Price
from podium.workers.pool import pool_file
from podium.workers.spec import OpenAISpec

CONFIGS = Path(__file__).parent.parent / "configs"
SMOKE = CONFIGS / "train" / "smoke.toml"
"""Its model is made by runs/smoke-train.sh."""
RECIPES = sorted({*(CONFIGS / "train").glob("*.toml")} - {SMOKE})
LAUNCHES = sorted((CONFIGS / "accelerate").glob("*.yaml"))
POOLS = sorted((Path(podium.__file__).parent / "assets" / "pools").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_one_that_the_trainer_takes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFIGS.parent)
    recipe = load(path, TrainSettings)
    trl_arguments(recipe.trl, GRPOConfig, GRPO_SETTINGS)
    lora_config(recipe)
    assert pool_file(recipe.pool).is_file()
    assert read_task_file(Path(recipe.tasks)).part
    text = path.read_text(encoding="utf-8")
    assert f"--config {path.relative_to(Path.cwd())}" in text
    ranks = 1 if "8gpu" not in text else 4 if "--num_processes 4" in text else 8
    assert recipe.batch % (ranks * recipe.grpo.micro_batch) == 0
    assert recipe.rounds == 1 or recipe.grpo.questions % ranks == 0


def test_the_smallest_recipe_is_one_that_the_trainer_takes() -> None:
    recipe = load(SMOKE, TrainSettings)
    trl_arguments(recipe.trl, GRPOConfig, GRPO_SETTINGS)
    assert recipe.batch % recipe.grpo.micro_batch == 0


def test_the_smallest_recipe_finds_its_files_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = read_run_settings(SMOKE, TrainSettings, ())
    assert len(open_pool(recipe.pool).names) == 3
    assert recipe.task_limit is not None
    assert len(open_tasks(recipe.tasks, "train", size=1000)) == recipe.task_limit


def test_training_files_are_searched_in_the_current_folder_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "run.toml").write_text('start = "x"\ntasks = "mine.jsonl"\npool = "team.toml"\n')
    (beside / "mine.jsonl").touch()
    (beside / "team.toml").touch()

    def read(*overrides: str) -> tuple[str, str]:
        settings = read_run_settings(Path("beside/run.toml"), TrainSettings, overrides)
        return settings.tasks, settings.pool

    assert read() == (str(beside / "mine.jsonl"), str(beside / "team.toml"))
    assert read("pool=team.toml", "tasks = gsm8k") == ("gsm8k", "team.toml")
    (tmp_path / "team.toml").touch()
    assert read() == (str(beside / "mine.jsonl"), "team.toml")
    (beside / "mine.jsonl").unlink()
    assert read()[0] == "mine.jsonl"


def test_the_paper_s_run_is_the_recipe() -> None:
    recipe = load(next(path for path in RECIPES if path.stem == "conductor-7b"), TrainSettings)
    grpo = recipe.grpo
    assert (grpo.iterations, grpo.questions, grpo.group, grpo.max_tokens) == (200, 4, 64, 1024)
    assert (grpo.temperature, grpo.lr, grpo.warmup, grpo.clip, grpo.beta) == (1.0, 1e-6, 0.03, 0.2, 0.0)
    assert (recipe.start, recipe.pool) == ("Qwen/Qwen2.5-7B-Instruct", "paper-constrained")
    assert (recipe.prompt.pool, recipe.prompt.examples, recipe.prompt.access) == (
        "anonymous",
        4,
        "all_or_none",
    )
    assert (recipe.trl["weight_decay"], recipe.trl["lr_scheduler_type"]) == (0.0, "cosine")


@pytest.mark.parametrize("path", LAUNCHES, ids=lambda path: path.stem)
def test_accelerate_reads_every_launch_file(path: Path) -> None:
    config = load_config_from_file(str(path))
    gpus = int(path.stem[0]) * (8 if "nodes" in path.stem else 1)
    assert (config.num_processes, config.num_machines) == (gpus, 2 if "nodes" in path.stem else 1)
    assert config.mixed_precision == "bf16"
    kind = {"fsdp": "FSDP", "zero3": "DEEPSPEED"}.get(path.stem.partition("-")[2], "NO")
    assert config.distributed_type == kind


@pytest.mark.parametrize("path", POOLS, ids=lambda path: path.stem)
def test_every_pool_loads_by_file_and_by_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load(path, TeamSettings)
    for worker in spec.worker:
        if isinstance(worker, OpenAISpec) and worker.api_key_env is not None:
            monkeypatch.setenv(worker.api_key_env, "made-up")
    pool = open_pool(str(path))
    assert pool.names == open_pool(path.stem).names == tuple(worker.name for worker in spec.worker)
    assert all(profile.description for profile in pool.profiles)
    assert all(profile.price.input >= 0 and profile.price.output >= 0 for profile in pool.profiles)


@pytest.mark.parametrize("path", POOLS, ids=lambda path: path.stem)
def test_every_pool_states_the_keys_and_prices_of_its_endpoints(path: Path) -> None:
    for worker in load(path, TeamSettings).worker:
        if isinstance(worker, OpenAISpec):
            local = worker.base_url.startswith("http://localhost:")
            assert local == (worker.price == Price()) == (worker.api_key_env is None)
            assert local or worker.base_url.startswith("https://")
            if (
                "openrouter" in worker.base_url
            ):  # the most that a host may ask is the price that budgets count with
                most = worker.extra["provider"]["max_price"]
                assert (most["prompt"], most["completion"]) == (worker.price.input, worker.price.output)


@pytest.mark.parametrize(
    ("name", "max_tokens"),
    [
        ("paper-constrained", (4096,) * 7),
        ("paper", (65535, 64000, 128000, 20480, 20480, 20480, 20480)),
    ],
)
def test_the_paper_s_pools_have_its_seven_slots_of_six_models(name: str, max_tokens: tuple[int, ...]) -> None:
    workers = [w for w in load(_pool(name), TeamSettings).worker if isinstance(w, OpenAISpec)]
    assert [worker.name for worker in workers] == [
        "gemini-2.5-pro",
        "claude-sonnet-4",
        "gpt-5",
        "qwen3-32b",
        "gemma-3-27b",
        "qwen3-32b-thinking",
        "r1-distill-qwen-32b",
    ]
    assert len({worker.model for worker in workers}) == 6
    assert tuple(worker.limits.max_tokens for worker in workers) == max_tokens
    thinks = name == "paper"
    gemini, claude, gpt, direct, _, thinking, _ = workers
    budget = 32768 if thinks else 128
    assert gemini.extra["extra_body"] == {"google": {"thinking_config": {"thinking_budget": budget}}}
    assert claude.extra == ({"thinking": {"type": "enabled", "budget_tokens": 32768}} if thinks else {})
    assert gpt.extra == {"reasoning_effort": "high" if thinks else "minimal"}
    assert (gpt.temperature, claude.temperature) == (None, 1.0 if thinks else 0.2)
    assert {worker.temperature for worker in workers} == {0.2, None, claude.temperature}
    for worker, on in ((direct, False), (thinking, True)):
        assert {**worker.extra, "provider": None} == {
            "top_p": 0.8,
            "top_k": 20,
            "presence_penalty": 1.0,
            "reasoning": {"enabled": on},
            "provider": None,
        }


def _pool(name: str) -> Path:
    return next(path for path in POOLS if path.stem == name)
