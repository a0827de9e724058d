"""How torch's process is set up."""

from __future__ import annotations

import pytest
import torch

from podium.train.runtime import compute_on_one_core


def test_tiny_models_use_one_thread_unless_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    compute_on_one_core()
    assert torch.get_num_threads() == 2
    monkeypatch.delenv("OMP_NUM_THREADS")
    compute_on_one_core()
    assert torch.get_num_threads() == 1  # Which is what the tests beside this one compute on.
