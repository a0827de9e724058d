"""Random tiny checkpoints in ordinary Hugging Face form."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import make_model, make_tokenizer

MakeCheckpoint = Callable[..., Path]


@pytest.fixture
def make_checkpoint(tmp_path: Path) -> MakeCheckpoint:
    """Saves `make_model` with its tokenizer; gives the folder."""

    def make(
        kind: str = "llama",
        *,
        dtype: torch.dtype = torch.float32,
        podium: dict[str, Any] | None = None,
        chat: str | None = None,
        name: str = "tiny",
        **changes: Any,
    ) -> Path:
        folder = tmp_path / name
        make_model(kind, **changes).to(dtype).save_pretrained(folder)
        tokenizer = make_tokenizer()
        tokenizer.chat_template = chat
        tokenizer.save_pretrained(folder)
        if podium is not None:
            (folder / "podium.json").write_text(json.dumps(podium))
        return folder

    return make
