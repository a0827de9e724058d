"""The benchmark of a GPU: here, where there may be none, that it says so; and its functions on a tiny shape."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import torch

from podium.train.run_estimate import GPUS, TrainingSize
from podium.train.shape import ModelShape

SCRIPT = Path(__file__).parent.parent.parent.parent / "benchmarks" / "gpu.py"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    return run_path(str(SCRIPT))


def test_without_a_gpu_it_says_so(
    benchmark: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    benchmark["main"](Namespace())
    assert capsys.readouterr().out.startswith("There is no GPU here, so nothing is measured")


@pytest.mark.parametrize("lora_rank", [None, 2])
def test_gpu_benchmark_measures_generation_and_updates(
    benchmark: dict[str, Any], lora_rank: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    training = TrainingSize(
        ModelShape(64, 16, 2, 2, 1, 8, 32, tied=True),
        batch=2, questions=2, prompt_tokens=8, completion_tokens=8, micro_batch=2, lora_rank=lora_rank,
    )  # fmt: skip
    found = benchmark["measure"](training, torch.device("cpu"))
    benchmark["tell"]("tiny", training, found, GPUS[0])

    assert min(found.generated, found.updated, found.flops) > 0
    assert found.generation_s == pytest.approx(256 * 1024 / found.generated)
    assert "256 x 1,024:" in capsys.readouterr().out
