"""What a run is refused for: each reason alone, all at once, and the same by a dry run and by a real start."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from podium.errors import UsageError
from podium.train.engine import OpenedQuestions
from podium.train.preflight import Preflight, preflight
from podium.train.ranks import Ranks
from podium.train.schedule import generate_tasks
from podium.train.settings import TrainSettings
from podium_testing import FaultServer

Settings = dict[str, Any]
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "m"
base_url = "{url}"
api_key_env = "{key}"
price = {{ input = 1000.0, output = 2000.0 }}
"""


class RankOf(Ranks):
    """One of several processes, which does not reach the others."""

    def __init__(self, size: int, index: int = 0) -> None:
        self.size, self.index = size, index


def inspect(settings: Settings, folder: Path | None = None, **options: Any) -> list[str]:
    async def refusals() -> list[str]:
        async with preflight(TrainSettings.model_validate(settings), folder, **options) as found:
            return [str(refusal) for refusal in found.problems]

    return asyncio.run(refusals())


@pytest.fixture
def pool(tmp_path: Path) -> str:
    """A pool of two workers whose keys are missing."""
    return write_pool(tmp_path, "http://127.0.0.1:9/v1")


def write_pool(folder: Path, url: str) -> str:
    path = folder / "pool.toml"
    path.write_text(
        "".join(WORKER.format(name=name, url=url, key=f"{name.upper()}_KEY") for name in ("ada", "bo"))
    )
    return str(path)


@pytest.mark.parametrize("store", ["none.sqlite", "postgresql://me@host/traces"])
def test_preflight_finds_no_problem_in_a_valid_run(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.setenv("PODIUM_STORE", store)
    assert inspect(settings, ranks=RankOf(2)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"trl": {"learning_rate": 1e-4}}, "trl.learning_rate is decided by grpo.lr; leave it out of [trl]."),
        ({"trl": {"logging_strategy": "no"}}, "trl.logging_strategy is decided by grpo.iterations"),
        ({"trl": {"learn": 1}}, "trl.learn: GRPOConfig has no such argument"),
        ({"trl": {"eval_on_start": True}}, "trl.eval_on_start is decided by grpo.eval_every"),
        ({"trl": {"load_best_model_at_end": True}}, "is decided by grpo.eval_every"),
        ({"trl": {"push_to_hub": True}}, "trl.push_to_hub is decided by podium train push"),
        ({"trl": {"hub_token": "hf_secret"}}, "trl.hub_token is decided by podium train push"),
        ({"trl": {"save_only_model": True}}, "trl.save_only_model is decided by Podium"),
        ({"trl": {"resume_from_checkpoint": "old"}}, "trl.resume_from_checkpoint is decided by --run"),
        ({"trl": {"gradient_checkpointing": "False"}}, "trl.gradient_checkpointing cannot be 'False'"),
        ({"trl": {"log_level": "informed"}}, "trl.log_level cannot be 'informed'; did you mean 'info'"),
        (
            {"grpo": {"loss_type": "gspo"}},
            "grpo.loss_type cannot be 'gspo'; did you mean",
        ),
        ({"trl": {"importance_sampling_level": "word"}}, "cannot be 'word'; known: token, sequence."),
        (
            {"trl": {"multi_objective_aggregation": "sum"}},
            "cannot be 'sum'; known: sum_then",
        ),
        (
            {"trl": {"vllm_importance_sampling_mode": "mask"}},
            "vllm_importance_sampling_mode cannot be 'mask'",
        ),
        ({"trl": {"lr_scheduler_type": "cosine_with_min_lr"}}, "One of min_lr or min_lr_rate should be set"),
        ({"trl": {"optim_args": "x"}}, "trl.optim_args cannot be 'x'; give it as"),
        ({"trl": {"adam_beta1": 2.0}}, "Invalid beta parameter at index 0: 2.0"),
        ({"trl": {"generation_kwargs": {"temprature": 1.0}}}, "transformers generates without temprature"),
        ({"trl": {"generation_kwargs": {"temperature": "hot"}}}, "has to be a strictly positive float"),
        ({"trl": {"generation_kwargs": "x"}}, "trl.generation_kwargs cannot be used: "),
        ({"trl": {"use_vllm": True}}, "trl.use_vllm needs vLLM"),
        ({"trl": {"optim": "adamw_bnb_8bit"}}, "bitsandbytes"),
        ({"trl": {"report_to": "nobody"}}, "trl.report_to = 'nobody' cannot be used"),
        ({"trl": {"report_to": ["wandb"]}}, "trl.report_to = ['wandb'] cannot be used"),
        ({"lora": {"ranks": 3}}, "[lora] cannot be used"),
        ({"lora": {"r": 4}, "quantization": {"load_in_4bit": True}}, "[quantization] needs bitsandbytes"),
        ({"start": "nowhere"}, "nowhere is not a folder"),
        ({"prompt": {"style": "full"}}, "has no chat template: it is a base model"),
        ({"prompt": {"style": "short"}}, "has no chat template: it is a base model"),
        ({"pool": ""}, "No pool is named"),
        ({"tasks": ""}, "No questions are named"),
        ({"pool": "none.toml"}, "none.toml: there is no such file"),
        ({"pool_sampling": {"without": ["nobody"]}}, "pool_sampling.without names 'nobody'"),
        ({"tasks": "nothing"}, "There is no task set 'nothing'"),
        ({"solved_in": "none.parquet"}, "none.parquet"),
        (
            {"tasks": "world", "task_limit": None, "solved_in": "none.parquet"},
            "solved_in: world draws questions that no recording has",
        ),
        ({"prompt": {"guide": "plan-lists"}}, "TRL samples without a guide"),
        ({"grpo": {"advantage": "maxrl"}}, "grpo.advantage is a setting of the engine shared_prefix"),
        ({"grpo": {"max_tokens": 1000}}, "exceeds the 1,024 that the model can read"),
    ],
)
def test_each_reason_is_one_sentence(settings: Settings, change: Settings, sentence: str) -> None:
    more = {key: settings[key] | keys for key, keys in change.items() if key in ("grpo", "prompt")}
    (refusal,) = inspect(settings | change | more)
    assert sentence in refusal


def test_a_task_without_a_grader_is_refused(settings: Settings, tmp_path: Path) -> None:
    tasks = tmp_path / "mine.toml"
    (tmp_path / "q.jsonl").write_text('{"question": "What?", "answer": "42"}\n')
    tasks.write_text('[[part]]\nset = "own"\nfile = "q.jsonl"\ngrader = "nobody"\n')

    (refusal,) = inspect(settings | {"tasks": str(tasks)})

    assert "grader" in refusal


def test_questions_that_the_policy_is_measured_on_are_refused(settings: Settings, tmp_path: Path) -> None:
    row = '{{"question": "How many apples are {0} crates of {0} apples each, all told?", "answer": "{1}"}}\n'
    for name in ("mine.jsonl", "exam.jsonl"):
        (tmp_path / name).write_text("".join(row.format(n, n * n) for n in range(40)))

    (refusal,) = inspect(
        settings | {"tasks": str(tmp_path / "mine.jsonl"), "held_out": (str(tmp_path / "exam.jsonl"),)}
    )

    assert "are held-out questions too" in refusal


def test_a_generated_set_is_compared_with_held_out_sets_too(settings: Settings, tmp_path: Path) -> None:
    generated = settings | {"tasks": "world", "task_limit": None}
    (refusal,) = inspect(generated | {"held_out": ("nowhere.csv",)})
    assert "nowhere.csv" in refusal
    drawn = generate_tasks(TrainSettings.model_validate(generated)).values()
    question = next(iter(drawn)).question.text
    exam = tmp_path / "exam.jsonl"
    exam.write_text(json.dumps({"question": question, "answer": "1"}) + "\n")
    (refusal,) = inspect(generated | {"held_out": (str(exam),)})
    assert "are held-out questions too" in refusal
    assert not inspect(generated | {"held_out": (str(exam),), "on_overlap": "leave_out"})


def test_ranks_that_cannot_share_the_batch_are_refused(settings: Settings) -> None:
    (refusal,) = inspect(settings, ranks=RankOf(3))
    assert "cannot be shared by 3 ranks" in refusal
    (refusal,) = inspect(settings, ranks=RankOf(16))
    assert "cannot be shared by 16 ranks" in refusal
    (refusal,) = inspect(settings | {"rounds": 2}, ranks=RankOf(4))
    assert "a question stays on one rank" in refusal


def test_every_worker_without_a_key_is_named(settings: Settings, pool: str) -> None:
    refusals = inspect(settings | {"pool": pool})
    assert [refusal.partition(" cannot")[0] for refusal in refusals] == [
        f"{pool}: worker 'ada'",
        f"{pool}: worker 'bo'",
    ]
    assert all("_KEY is not set" in refusal for refusal in refusals)
    assert inspect(settings | {"pool": pool}, ranks=RankOf(2, index=1)) == []


def test_a_first_batch_over_the_budget_is_refused_but_no_later_start(
    settings: Settings, pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("ADA_KEY", "BO_KEY"):
        monkeypatch.setenv(key, "made-up")
    dear = settings | {"pool": pool}
    (refusal,) = inspect(dear, tmp_path / "run", run_budget_usd=1.0)

    assert refusal.startswith("The first batch of 8 plans is likely to cost $")
    assert "--run-budget-usd is $1.00" in refusal
    assert inspect(dear, tmp_path / "run", run_budget_usd=1e6) == []
    (tmp_path / "run").mkdir()
    stored = TrainSettings.model_validate(dear).model_dump(mode="json")
    (tmp_path / "run" / "config.json").write_text(json.dumps(stored))
    assert inspect(dear, tmp_path / "run", run_budget_usd=1.0) == []


def test_a_folder_of_something_else_is_refused_and_left_as_it_is(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (refusal,) = inspect(settings, tmp_path)
    assert "holds something other than a run" in refusal
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_start_lists_all_reasons_before_it_calls_or_writes(
    train: Any, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultServer().in_thread() as server:
        monkeypatch.setenv("ADA_KEY", "made-up")
        monkeypatch.delenv("BO_KEY", raising=False)
        wrong = settings | {
            "pool": write_pool(tmp_path, server.url),
            "trl": {"learn": 1, "bf32": True},
            "grpo": settings["grpo"] | {"max_tokens": 1000},
        }
        expected = inspect(wrong, tmp_path / "run")
        with pytest.raises(UsageError) as refused:
            train(wrong)

    assert len(expected) == 4
    assert str(refused.value).startswith("This run has 4 problems: (1) trl.learn")
    assert all(refusal in str(refused.value) for refusal in expected)
    assert not server.requests
    assert not (tmp_path / "run").exists()


def test_preflight_raises_a_single_problem_unchanged() -> None:
    problem = UsageError("nowhere is not a folder")
    found = Preflight(TrainSettings(start="-"), Ranks(), [problem], None, OpenedQuestions(), None)
    with pytest.raises(UsageError, match=r"^nowhere is not a folder"):
        found.require()


def test_a_model_on_the_hub_is_described_without_its_weights(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the hub's cache, as it is on the disk: no network is needed."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--someone--tiny"
    snapshot = repository / "snapshots" / ("0" * 40)
    shutil.copytree(settings["start"], snapshot, ignore=shutil.ignore_patterns("*.safetensors"))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)

    assert inspect(settings | {"start": "someone/tiny"}, weights=False) == []
    shared_prefix = {"engine": "shared_prefix", "trl": {}}
    assert inspect(settings | {"start": "someone/tiny"} | shared_prefix, weights=False) == []
    (refusal,) = inspect(settings | {"start": "someone/tiny"})
    assert "weights" in refusal
