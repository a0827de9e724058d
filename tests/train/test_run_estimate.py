"""Formulas: against transformers, peft and figures worked out by hand; and the page that shows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, Qwen2Config, Qwen3Config

from podium.executor.plan_estimate import PastAnswers, estimate_plan
from podium.scoring import ScoringSettings
from podium.tasks.task import Grade, Task
from podium.trace import Reply
from podium.train.run_estimate import (
    GIB,
    GPU,
    GPUS,
    PEAK_SHARE,
    SHAPES,
    GPUEstimate,
    TrainingSize,
    estimate_workers,
    find_gpu,
)
from podium.train.settings import TrainSettings
from podium.train.shape import ModelShape
from podium.types import Limits, Price, Profile, Question
from podium.workers.base import Request, Worker
from podium.workers.pool import Pool
from podium.workflow import Step, Workflow
from scripted_team import Sums, open_team

ROOT = Path(__file__).parents[2]
SHAPE = ModelShape(100, 8, 2, 4, 2, 2, 16, tied=True)
TRAINING = TrainingSize(
    SHAPE, batch=8, questions=2, prompt_tokens=30, completion_tokens=10, micro_batch=4, vllm=False
)
CARD = GPU("card", memory_gib=1.0, tflops=1e-6, bandwidth=1e-6)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_parameters_that_transformers_makes_of_it(name: str) -> None:
    shape = SHAPES[name]
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(_config(name, shape))
    made = sum(weight.numel() for weight in model.parameters())

    assert abs(shape.parameters / made - 1) < 1e-3
    assert ModelShape.of_dense_decoder(model.config.to_dict()) == shape


def test_an_adapter_has_the_parameters_that_peft_gives_it() -> None:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(_config("Qwen2", SHAPE))
        adapted = get_peft_model(model, LoraConfig(r=3, target_modules="all-linear", task_type="CAUSAL_LM"))
    assert SHAPE.lora_parameters(3) == adapted.get_nb_trainable_parameters()[0]


def _config(name: str, shape: ModelShape) -> Qwen2Config | Qwen3Config:
    kind = Qwen3Config if "Qwen3" in name else Qwen2Config
    return kind(
        vocab_size=shape.vocab,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head_size,
        tie_word_embeddings=shape.tied,
    )


@pytest.mark.parametrize(
    ("trl", "bytes_"), [({}, 4), ({"bf16": True}, 2), ({"fp16": True}, 2), ({"fp16": False}, 4)]
)
def test_both_half_precisions_compute_in_two_bytes(trl: dict[str, bool], bytes_: int) -> None:
    settings = TrainSettings(start="-", engine="trl", trl=trl)
    assert TrainingSize.of(settings, SHAPE, 30).compute_bytes == bytes_


def test_a_mixture_of_experts_has_no_formula() -> None:
    assert ModelShape.of_dense_decoder({"num_experts": 8, "vocab_size": 10}) is None
    assert ModelShape.of_dense_decoder({"vocab_size": 10}) is None


def test_memory_estimate_matches_a_hand_computation() -> None:
    # A layer: 8x8 + 2 x 8x4 + 8x8 and 3 x 8x16, 576 in all; 2 layers and 100 x 8 embeddings, once.
    parameters = 2 * 576 + 800
    held = GPUEstimate(TRAINING, CARD, ranks=2).memory

    assert SHAPE.parameters == parameters
    assert (held.weights, held.gradients, held.moments) == (parameters * 2, parameters * 2, parameters * 4)
    assert held.compute_copy == parameters * 2 / 2
    assert held.activations == 4 * 40 * (2 * 8 + 8 * 8 + 3 * 16) * 2
    assert held.logits == 4 * 10 * 100 * 8
    assert held.generation == 4 * 40 * (2 * 2 * 2 * 2) * 2  # half of the 8 sequences, in bfloat16
    assert held.peak == held.weights + held.moments + max(held.update, held.generation)


def test_vllm_takes_its_share_at_the_same_time_unless_it_sleeps() -> None:
    awake = replace(TRAINING, vllm=True, vllm_share=0.5)
    for training, together in ((awake, True), (replace(awake, vllm_sleeps=True), False)):
        held = GPUEstimate(training, CARD).memory
        assert held.generation == GIB / 2
        assert held.keeps_generation == together
    assert GPUEstimate(replace(awake, vllm_share=0.0), CARD).memory.generation == 0


def test_an_adapter_alone_has_gradients_and_moments() -> None:
    lora = replace(TRAINING, lora_rank=2, weight_bytes=2)
    held = GPUEstimate(lora, CARD).memory

    assert lora.trained_parameters == SHAPE.lora_parameters(2)
    assert held.weights == SHAPE.parameters * 2 + lora.trained_parameters * 4
    assert (held.gradients, held.moments, held.compute_copy) == (
        lora.trained_parameters * 4,
        lora.trained_parameters * 8,
        0,
    )


@pytest.mark.parametrize(
    ("change", "each"),
    [
        ({"checkpointing": False}, 6),
        ({}, 8),
        ({"lora_rank": 2, "checkpointing": False}, 4),
        ({"lora_rank": 2}, 6),
        ({"passes": 2}, 16),
        ({"reference": True}, 10),
    ],
)
def test_an_update_has_so_many_operations_for_each_parameter_and_token(
    change: dict[str, object], each: int
) -> None:
    changed = replace(TRAINING, **change)  # type: ignore[arg-type]
    assert changed.update_flops == each * SHAPE.matmul_parameters * 8 * 40


def test_ranks_share_the_update_and_the_writing() -> None:
    alone, shared = (GPUEstimate(TRAINING, CARD, ranks) for ranks in (1, 4))
    assert alone.update_s == pytest.approx(4 * shared.update_s)
    assert alone.update_s == pytest.approx(TRAINING.update_flops / 1e6 / PEAK_SHARE)
    assert alone.generation_s > shared.generation_s
    assert alone.generation_s > GPUEstimate(replace(TRAINING, vllm=True), CARD).generation_s


def test_a_card_is_known_by_the_name_that_its_driver_gives_it() -> None:
    assert find_gpu("NVIDIA H100 80GB HBM3") == next(gpu for gpu in GPUS if gpu.name == "H100")
    assert find_gpu("NVIDIA GeForce RTX 4090") is not None
    assert find_gpu("Some card") is None


class Priced(Worker):
    """A worker that would be asked for real."""

    profile = Profile(name="priced", price=Price(input=1.0, output=2.0))
    limits = Limits(concurrency=4)

    async def answer(self, request: Request) -> Reply:
        raise AssertionError("an estimate asks nobody")


async def _never(response: str, gold: str) -> Grade:
    raise AssertionError("an estimate grades nothing")


TASK = Task("one", Question(text="What is 17 plus 25?"), "42", _never)


def test_plans_of_one_step_cost_what_the_executor_estimates() -> None:
    pool = Pool([Priced()])
    told = estimate_workers(ScoringSettings(max_steps=1), pool, [TASK], plans=1, batch=1)
    one = estimate_plan(Workflow((Step(0, "Add."),)), pool, TASK.question)

    assert told.paid
    assert told.calls == 1
    # Subtasks of random plans differ by some words.
    cost = told.cost_usd
    assert cost.likely == pytest.approx(one.cost_usd.likely, rel=0.02)
    assert cost.low == pytest.approx(one.cost_usd.low, rel=0.1)
    assert cost.high == pytest.approx(one.cost_usd.high, rel=0.02)


def test_longer_plans_cost_more_and_the_same_arguments_give_the_same() -> None:
    pool = Pool([Priced()])
    told = estimate_workers(ScoringSettings(), pool, [TASK], plans=1, batch=1)

    assert told == estimate_workers(ScoringSettings(), pool, [TASK], plans=1, batch=1)
    for figure in (told.tokens, told.cost_usd):
        assert figure.low < figure.likely < figure.high
    assert list(told.cost_by_steps) == [1, 2, 3, 4, 5]
    assert told.cost_by_steps[1] < told.cost_by_steps[5]


def test_workers_take_as_long_as_the_busiest_is_busy() -> None:
    past = {"priced": PastAnswers((100,) * 9, (8.0,) * 9)}
    one, many = (
        estimate_workers(
            ScoringSettings(max_steps=1), Pool([Priced()]), [TASK], plans=800, batch=batch, past=past
        )
        for batch in (1, 400)
    )

    assert one.iteration_s == 8.0
    assert many.iteration_s == pytest.approx(400 * 8.0 / 4)
    assert many.calls == pytest.approx(800)


def test_simulated_workers_are_priced_but_not_paid_and_take_no_time() -> None:
    tasks = list(Sums("train", size=5))
    told = estimate_workers(ScoringSettings(), open_team(), tasks, plans=1, batch=1000)

    assert not told.paid
    assert told.cost_usd.likely > 0
    assert told.iteration_s == 0


def test_scaling_page_shows_the_computed_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    printed = run_path(str(ROOT / "runs" / "scaling.py"))
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")

    assert "\n".join(printed["machines"]()) in page
    assert "\n".join(printed["dollars"]()) in page
