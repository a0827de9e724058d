"""The supervised stage: where examples come from, what is learned of them, and a whole small run."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.sft_config import SFTConfig

from podium.calls import CallState
from podium.conductor.checkpoint import Checkpoint
from podium.errors import BudgetExceededError, ConfigError
from podium.planners.registry import open_baseline
from podium.scoring import RolloutRequest, open_session
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store import TraceStore
from podium.tasks import open_tasks
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.train.engine import EncodedExample
from podium.train.examples import TrainingExample, collect_examples
from podium.train.preflight import preflight
from podium.train.settings import TrainSettings
from podium.train.sft_run import encode_examples, run_sft
from podium.train.shared_prefix.checkpoints import Checkpoints
from podium.train.shared_prefix.sft import batch_of
from podium.train.trl.arguments import trl_arguments
from podium.train.trl.grpo import find_problems as grpo_problems
from podium.train.trl.grpo import grpo_config
from podium.train.trl.sft import find_problems as sft_problems
from podium.train.trl.sft import sft_config
from podium.types import Message, Question
from podium.workers.pool import Pool
from podium.workflow import PlanRules, Workflow, parse
from podium_testing import FaultServer

Settings = dict[str, Any]

SHARED_PREFIX: Settings = {"engine": "shared_prefix", "trl": {}, "dtype": "fp32"}
TRL: Settings = {"engine": "trl"}


async def _collected(settings: Settings, warnings: list[str] | None = None) -> list[TrainingExample]:
    experiment = TrainSettings.model_validate(settings)
    async with open_session(experiment, CallState()) as session:
        return await collect_examples(experiment, session, [].append if warnings is None else warnings.append)


async def test_random_examples_are_valid_plans_for_the_runs_prompts(settings: Settings) -> None:
    examples = await _collected(settings | {"sft": {"examples": "random", "count": 30}})

    plans = [parse(example.completion, PlanRules(workers=6)) for example in examples]
    assert all(isinstance(plan, Workflow) for plan in plans)
    assert len({example.completion for example in examples}) > 20
    assert len({example.messages for example in examples}) == 20  # The tasks come in turn.


async def test_only_traces_with_right_answers_over_the_same_pool_are_learned(
    settings: Settings, tmp_path: Path
) -> None:
    pool = open_pool(settings["pool"])
    planner = open_baseline("single:gus", pool.profiles, seed="0")
    tasks = list(open_tasks(settings["tasks"], "train", size=20))
    foreign = list(open_tasks(settings["tasks"], "validation", size=3))
    right = 0
    with TraceStore(tmp_path / "teacher.sqlite") as store:
        for task in (*tasks, *foreign):
            trace = await Runner(planner, pool).answer(task.question)
            store.add(trace)
            right += task in tasks and trace.answer is not None and (await task.grade(trace.answer)).correct
        other = await Runner(planner, pool.subset([4, 5])).answer(tasks[0].question)
        store.add(other)
        # What ran was not what the planner wrote.
        for task in tasks:
            trace = await Runner(planner, pool).answer(task.question)
            (round_,) = trace.rounds
            for number, change in enumerate(({"reason": "Kept with gus."}, {"edited": True})):
                kept = round_.model_copy(update={"plan": replace(round_.plan, **change)})
                store.add(trace.model_copy(update={"id": f"{trace.id}{number}", "rounds": (kept,)}))
    warnings: list[str] = []

    examples = await _collected(settings | {"sft": {"examples": str(tmp_path / "teacher.sqlite")}}, warnings)

    assert 0 < right < 20
    assert len(examples) == right
    assert warnings == [
        f"{tmp_path / 'teacher.sqlite'}: 3 traces are of other questions than those of {settings['tasks']}."
    ]


DRAWN: Settings = {
    "pool_sampling": {"random": True, "min_workers": 3, "max_workers": 5},
    "cost_weights": [0.0, 1.0, 2.0],
}
PLAN = 'Two steps.\nmodel_id = [2, 0]\nsubtasks = ["Add.", "Check."]\naccess_list = [[], ["all"]]'


async def test_a_rollouts_trace_is_learned_from_the_prompt_that_it_answered(
    settings: Settings, tmp_path: Path
) -> None:
    settings |= DRAWN | {"prompt": settings["prompt"] | {"levels": 3}}
    with TraceStore(tmp_path / "run.sqlite") as store:
        async with open_session(
            TrainSettings.model_validate(settings), CallState(), on_trace=store.add
        ) as session:
            requests = [RolloutRequest(task=task, group="train/1", plans=(PLAN,)) for task in session.tasks]
            scores = [await session.score(request) for request in requests]
            prompts = {await session.prompt(one.model_copy(update={"plans": ()})) for one in requests}
    assert all(score.valid for score in scores)
    sft = {"examples": str(tmp_path / "run.sqlite"), "min_score": 0.0}

    examples = await _collected(settings | {"sft": sft})

    assert {example.messages for example in examples} == prompts
    assert {example.completion for example in examples} == {PLAN}
    assert len({re.findall("Thrift: .", example.messages[0].content)[0] for example in examples}) == 3


async def test_a_teachers_plan_is_learned_over_pools_as_training_draws_them(
    settings: Settings, tmp_path: Path
) -> None:
    pool = open_pool(settings["pool"])
    planner = open_baseline("single:gus", pool.profiles, seed="0")
    with TraceStore(tmp_path / "teacher.sqlite") as store:
        for task in open_tasks(settings["tasks"], "train", size=8):
            store.add(await Runner(planner, pool).answer(task.question))
    row = {"question": "1 + 1?", "plan": PLAN}
    (tmp_path / "plans.jsonl").write_text(json.dumps(row) + "\n")
    settings |= DRAWN | {"prompt": settings["prompt"] | {"levels": 3}}
    teacher = {"examples": str(tmp_path / "teacher.sqlite"), "min_score": 0.0}

    for examples, names in (
        (await _collected(settings | {"sft": teacher}), ["gus"]),
        (
            await _collected(settings | {"sft": {"examples": str(tmp_path / "plans.jsonl")}}),
            [pool.names[2], pool.names[0]],
        ),
    ):
        shown = [re.findall(r"(\d+): (\w+):", example.messages[0].content) for example in examples]
        assert examples
        assert all(3 <= len(offered) <= 5 for offered in shown)
        for example, offered in zip(examples, shown, strict=True):
            plan = parse(example.completion, PlanRules(workers=len(offered)))
            assert isinstance(plan, Workflow)
            assert [dict(offered)[str(step.worker)] for step in plan.steps] == names


async def test_a_teachers_plan_is_learned_in_the_form_that_the_prompt_asks_for(
    settings: Settings, tmp_path: Path
) -> None:
    pool = open_pool(settings["pool"])
    first, third = pool.names[0], pool.names[2]
    named = (
        f'{{"thought": "{third}, then {first}.", "steps": [{{"worker": "{third}", "subtask": "Add.", "sees": []}}, '
        f'{{"worker": "{first}", "subtask": "Check.", "sees": ["all"]}}]}}'
    )
    other = named.replace('"thought": "', f'"thought": "Not {pool.names[4]}: ')
    numbered = named.replace(f'"worker": "{third}"', '"worker": 2').replace(
        f'"worker": "{first}"', '"worker": 0'
    )
    path = tmp_path / "plans.jsonl"
    settings |= {"pool_sampling": DRAWN["pool_sampling"], "prompt": {"style": "short", "form": "structured"}}

    for written in (named, numbered, other, PLAN):
        path.write_text((json.dumps({"question": "1 + 1?", "plan": written}) + "\n") * 8)
        for example in await _collected(settings | {"sft": {"examples": str(path)}}):
            shown = re.findall(r"^- (\w+):", example.messages[-1].content, re.MULTILINE)
            plan = parse(example.completion, PlanRules(workers=len(shown), names=shown))
            assert isinstance(plan, Workflow)
            assert [(shown[step.worker], step.subtask) for step in plan.steps] == [
                (third, "Add."),
                (first, "Check."),
            ]
            assert re.findall(r'"worker": "(\w+)"', example.completion) == [third, first]
            assert set(pool.names) & set(re.findall(r"\w+", example.completion)) <= set(shown)
            if written == named:
                assert example.completion == named

    whole = settings | {"pool_sampling": {}}
    with TraceStore(tmp_path / "run.sqlite") as store:
        async with open_session(
            TrainSettings.model_validate(whole), CallState(), on_trace=store.add
        ) as session:
            for task in session.tasks:
                assert (await session.score(RolloutRequest(task=task, group="train/1", plans=(named,)))).valid
    sft = {"examples": str(tmp_path / "run.sqlite"), "min_score": 0.0}
    for drawn in (whole, settings):
        examples = await _collected(drawn | {"sft": sft})
        assert {example.completion for example in examples} == {named}
    (example, *_) = await _collected(whole | {"sft": sft, "prompt": {"style": "short"}})
    assert parse(example.completion, PlanRules(workers=len(pool))) == parse(
        PLAN, PlanRules(workers=len(pool))
    )
    assert example.completion.startswith("model_id")


async def test_plans_of_an_examples_file_are_parsed_like_policy_plans(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "plans.jsonl"
    plan = 'model_id = [0]\nsubtasks = ["Add."]\naccess_list = [[]]'
    path.write_text(json.dumps({"question": "1 + 1?", "plan": plan}) + "\n")
    (example,) = await _collected(settings | {"sft": {"examples": str(path)}})
    assert example.completion == plan
    assert "1 + 1?" in example.messages[-1].content

    row = json.dumps({"question": "1 +\u2028 1?", "plan": plan}, ensure_ascii=False)
    path.write_text(row + "\n", encoding="utf-8")
    (example,) = await _collected(settings | {"sft": {"examples": str(path)}})
    assert "1 +\u2028 1?" in example.messages[-1].content

    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        await _collected(settings | {"sft": {"examples": str(path)}})

    path.write_text(json.dumps({"question": "1 + 1?", "plan": plan.replace("[0]", "[9]")}) + "\n")
    with pytest.raises(ConfigError, match=r"plans.jsonl, line 1: the plan cannot be run"):
        await _collected(settings | {"sft": {"examples": str(path)}})


async def test_only_the_completion_is_learned_after_the_prompts_tokens(settings: Settings) -> None:
    example = TrainingExample((Message(role="user", content="Plan:\n"),), "model_id = [0]")
    async with preflight(TrainSettings.model_validate(settings | {"stage": "sft"}), None) as checks:
        run = checks.require()
    codec, (end,) = run.codec, run.start.eos_token_ids

    (encoded,) = encode_examples([example], run)

    assert codec.decode(encoded.completion[:-1]) == "model_id = [0]"
    assert encoded.completion[-1] == end
    assert list(encoded.prompt) == codec.encode(example.messages)


@pytest.mark.parametrize("engine", [SHARED_PREFIX, TRL], ids=["shared_prefix", "trl"])
def test_a_run_learns_its_examples_and_goes_on_where_it_ended(
    settings: Settings, tmp_path: Path, engine: Settings
) -> None:
    sft = {"examples": "random", "count": 8, "epochs": 3, "batch": 4, "lr": 1e-3, "save_every": 2}
    experiment = TrainSettings.model_validate(settings | engine | {"stage": "sft", "sft": sft})

    said: list[str] = []
    policy = run_sft(experiment, tmp_path / "run", say=said.append)

    assert re.fullmatch(
        r"4 of 24 examples, [\d,]+ tokens a second, loss [\d.]+, \d+:\d\d gone, \d+:\d\d left", said[0]
    )
    assert said[-2].startswith("24 of 24 examples, ")
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert Checkpoint.read(policy).prompt.style == "brief"
    assert run_sft(experiment, tmp_path / "run") == policy
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 6


def test_both_engines_learn_the_same_from_a_batch(settings: Settings, tmp_path: Path) -> None:
    sft = {"examples": "random", "count": 8, "epochs": 2, "batch": 8, "micro_batch": 4, "lr": 1e-3}
    steps = {}
    for name, engine in {"shared_prefix": SHARED_PREFIX, "trl": TRL}.items():
        run_sft(
            TrainSettings.model_validate(settings | engine | {"stage": "sft", "sft": sft}), tmp_path / name
        )
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        steps[name] = [json.loads(line) for line in lines]

    for ours, theirs in zip(steps["shared_prefix"], steps["trl"], strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=1e-3)
        assert ours["learning_rate"] == theirs["learning_rate"]


def test_stopped_supervised_run_resumes_identically(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sft = {"examples": "random", "count": 8, "epochs": 3, "batch": 4, "lr": 1e-3, "save_every": 2}
    experiment = TrainSettings.model_validate(settings | SHARED_PREFIX | {"stage": "sft", "sft": sft})
    whole = run_sft(experiment, tmp_path / "whole")
    stopped = Checkpoints.save

    def save(self: Checkpoints, model: Any, optimizer: Any, number: int) -> Path:
        path = stopped(self, model, optimizer, number)
        if number == 4:
            raise KeyboardInterrupt
        return path

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", save)
        with pytest.raises(KeyboardInterrupt):
            run_sft(experiment, tmp_path / "stopped")
    resumed = run_sft(experiment, tmp_path / "stopped")

    assert (resumed / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_each_epoch_learns_every_example_once() -> None:
    examples = [EncodedExample((0,), (number,)) for number in range(10)]
    seen = [
        example.completion[0] for step in range(5) for example in batch_of(examples, step, size=4, seed=7)
    ]

    assert Counter(seen) == dict.fromkeys(range(10), 2)
    first, second = (batch_of(examples, 0, size=10, seed=seed) for seed in (7, 8))
    assert first != second


def test_examples_of_one_prompt_stay_together_in_a_batch() -> None:
    examples = [EncodedExample((number // 4,), (number,)) for number in range(24)]
    batches = [batch_of(examples, step, size=8, seed=1) for step in range(3)]

    assert sorted(example.completion[0] for batch in batches for example in batch) == list(range(24))
    assert all(len({example.prompt for example in batch}) == 2 for batch in batches)


async def _judged(folder: Path, settings: Settings, url: str) -> Settings:
    """A trace of a teacher, whose answer a paid judge has to grade."""
    (folder / "train.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}\n')
    (folder / "own.toml").write_text(
        '[[part]]\nset = "own"\nfiles = { train = "train.jsonl" }\n[part.grader]\nkind = "judge"\n'
        '[part.grader.worker]\nname = "judy"\nkind = "openai"\nmodel = "j"\n'
        f'base_url = "{url}"\nprice = {{ input = 1000.0, output = 2000.0 }}\n'
        "limits = { max_tokens = 100, retries = 0 }\n"
    )
    (folder / "pool.toml").write_text('[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = ["42"]\n')
    pool = open_pool(str(folder / "pool.toml"))
    planner = open_baseline("single:ada", pool.profiles, seed="0")
    with TraceStore(folder / "teacher.sqlite") as store:
        store.add(await Runner(planner, pool).answer(Question(text="What is 6 times 7?")))
    files = {"tasks": "own.toml", "pool": "pool.toml"}
    return settings | {key: str(folder / name) for key, name in files.items()} | {
        "stage": "sft", "sft": {"examples": str(folder / "teacher.sqlite")}
    }  # fmt: skip


async def test_a_judge_of_traces_is_paid_from_the_runs_budget(settings: Settings, tmp_path: Path) -> None:
    async with FaultServer("It says the same.\nRIGHT") as provider:
        experiment = TrainSettings.model_validate(await _judged(tmp_path, settings, provider.url))
        with closing(SharedSpendLimit(None, "run", 100.0)) as spend_limit:
            async with open_session(experiment, CallState(spend_limits=[spend_limit])) as session:
                assert len(await collect_examples(experiment, session, [].append)) == 1
            words = sum(1000 * one.input_tokens + 2000 * one.output_tokens for one in provider.requests)
            assert spend_limit.spent_usd == pytest.approx(words / 1e6)
        asked = len(provider.requests)

        @contextmanager
        def poor(pool: Pool) -> Iterator[CallState]:
            with closing(SharedSpendLimit(None, "run", 0.01)) as spend_limit:
                yield CallState(spend_limits=[spend_limit])

        with pytest.raises(BudgetExceededError, match="of the run's"):
            await asyncio.to_thread(run_sft, experiment, tmp_path / "run", make_call_state=poor)
        assert len(provider.requests) == asked


def test_supervised_run_needs_no_worker_key_and_may_lead_real_workers(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADA_KEY", raising=False)
    (tmp_path / "pool.toml").write_text(
        '[[worker]]\nname = "ada"\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
        'api_key_env = "ADA_KEY"\n'
    )
    sft = {"examples": "random", "count": 2, "batch": 2, "micro_batch": 2}
    experiment = TrainSettings.model_validate(
        settings | {"stage": "sft", "sft": sft, "pool": str(tmp_path / "pool.toml")}
    )

    policy = run_sft(experiment, tmp_path / "run")

    assert not Checkpoint.read(policy).scope.simulated


def test_a_batch_that_micro_batches_cannot_make_up_is_refused(settings: Settings, tmp_path: Path) -> None:
    experiment = TrainSettings.model_validate(settings | TRL | {"stage": "sft", "sft": {"batch": 10}})

    with pytest.raises(ConfigError, match=r"10 examples .* make sft.batch a multiple of 4, or"):
        run_sft(experiment, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_unknown_source_of_examples_is_refused(settings: Settings) -> None:
    with pytest.raises(ConfigError, match=r"give NAME.jsonl, a store of traces NAME.sqlite, or random"):
        asyncio.run(_collected(settings | {"sft": {"examples": "plans.txt"}}))


@pytest.mark.parametrize(
    ("dtype", "trl", "expected"),
    [
        ("auto", {}, False),
        ("auto", {"bf16": True}, True),
        ("fp32", {}, False),
        ("bf16", {}, True),
        ("fp32", {"bf16": True}, None),
        ("bf16", {"fp16": True}, None),
    ],
)
def test_both_trainers_multiply_in_the_dtype_of_the_run(
    settings: Settings, tmp_path: Path, dtype: str, trl: dict[str, bool], expected: bool | None
) -> None:
    experiment = TrainSettings.model_validate(settings | {"dtype": dtype, "trl": trl})
    if expected is None:
        (key,) = trl
        for find_problems in (grpo_problems, sft_problems):
            assert [error.where for error in find_problems(experiment, None, 1)] == [("trl", key)]
    else:
        assert grpo_config(experiment, tmp_path, 1).bf16 is expected
        assert sft_config(experiment, tmp_path, 1, context=100).bf16 is expected


def test_a_file_for_both_stages_gives_each_its_trainers_arguments() -> None:
    table = {"use_vllm": True, "packing": False, "weight_decay": 0.1}
    assert trl_arguments(table, SFTConfig, {}) == {"packing": False, "weight_decay": 0.1}
    assert trl_arguments(table, GRPOConfig, {}) == {"use_vllm": True, "weight_decay": 0.1}
    with pytest.raises(ConfigError, match="SFTConfig has no such argument; did you mean 'use_vllm'"):
        trl_arguments({"use_vlm": True}, SFTConfig, {})


def test_the_supervised_stage_refuses_an_adapter_it_cannot_train(settings: Settings) -> None:
    experiment = TrainSettings.model_validate(settings | TRL | {"lora": {"ranks": 3}})
    (refusal,) = sft_problems(experiment, None, 1)
    assert "[lora] cannot be used" in str(refusal)


async def test_an_example_without_a_prompt_or_a_completion_is_refused(
    settings: Settings, tmp_path: Path
) -> None:
    path, asked = tmp_path / "rows.jsonl", [{"role": "user", "content": "1 + 1?"}]
    for row, says in (
        ({"messages": asked, "completion": None}, "completion is no text"),
        ({"messages": asked, "completion": " "}, "completion is no text"),
        ({"messages": [], "completion": PLAN}, "messages: "),
        ({"question": None, "plan": PLAN}, "question is no text"),
    ):
        path.write_text(json.dumps(row) + "\n")
        with pytest.raises(ConfigError, match=f"line 1: {says}"):
            await _collected(settings | {"sft": {"examples": str(path)}})
