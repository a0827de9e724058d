"""A checkpoint whose author wants code to run on the machine that opens it: it is refused, and nothing runs."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from podium.conductor.open import open_policy
from podium.errors import CheckpointError
from tiny_policy import write_policy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound checkpoint, too odd for the engine that needs no transformers."""
    folder = tmp_path / "checkpoint"
    shape: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=2000, num_hidden_layers=1, **shape)).save_pretrained(folder)
    tiny = write_policy(tmp_path / "tiny")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny / name, folder)
    (folder / "podium.json").write_text(json.dumps({"prompt": {"style": "full"}}))
    return folder


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_weights_that_are_a_pickle_are_not_read(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Payload(tmp_path / "ran")}, folder / "pytorch_model.bin", pickle_module=pickle)
    with pytest.raises(CheckpointError, match="safetensors"):
        open_policy(folder)
    assert not (tmp_path / "ran").exists()


def test_code_in_the_folder_is_not_run_and_nobody_is_asked_on_the_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(mark)!r}).touch()\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.C", "AutoModelForCausalLM": "mine.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(sys, "stdin", None)  # Whoever reads an answer from the terminal fails here.
    with pytest.raises(CheckpointError, match="custom code"):
        open_policy(folder)
    assert not mark.exists()
