"""What a folder says of itself, and every way in which it may be none."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoModelForCausalLM

from podium.conductor import Checkpoint, PromptSettings, open_policy
from podium.errors import CheckpointError, ConfigError, UsageError
from tiny_models import CHAT

Make = Callable[..., Path]


def test_a_checkpoint_names_its_prompt_settings(make_checkpoint: Make) -> None:
    settings = {"style": "brief", "pool": "anonymous", "examples": 0}
    checkpoint = Checkpoint.read(make_checkpoint(podium={"prompt": settings}))
    assert checkpoint.prompt == PromptSettings(style="brief", pool="anonymous", examples=0)
    assert (checkpoint.name, checkpoint.bos_token_id, checkpoint.eos_token_ids, checkpoint.context) == (
        "tiny",
        1,
        frozenset({2}),
        256,
    )


def test_without_podium_json_the_prompt_is_the_full_one(make_checkpoint: Make) -> None:
    checkpoint = Checkpoint.read(make_checkpoint())
    assert checkpoint.prompt == PromptSettings()
    assert not checkpoint.uses_chat_template


def test_a_chat_template_counts_unless_the_prompt_is_brief(make_checkpoint: Make) -> None:
    assert Checkpoint.read(make_checkpoint(chat=CHAT, name="full")).uses_chat_template
    brief = make_checkpoint(chat=CHAT, podium={"prompt": {"style": "brief"}}, name="brief")
    assert not Checkpoint.read(brief).uses_chat_template


def test_parameters_are_counted_without_loading_them(make_checkpoint: Make) -> None:
    folder = make_checkpoint("qwen2")
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert Checkpoint.read(folder).parameters() == sum(p.numel() for p in model.parameters())


def test_every_ending_token_counts(make_checkpoint: Make) -> None:
    folder = make_checkpoint()
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 7]}')
    assert Checkpoint.read(folder).eos_token_ids == frozenset({2, 7})
    (folder / "generation_config.json").unlink()
    assert Checkpoint.read(folder).eos_token_ids == frozenset({2})


def test_a_model_that_sees_images_has_its_language_models_context(make_checkpoint: Make) -> None:
    folder = make_checkpoint()
    config = json.loads((folder / "config.json").read_text())
    moved = ("max_position_embeddings", "eos_token_id", "bos_token_id", "hidden_size")
    text_config = {key: config.pop(key) for key in moved}
    (folder / "config.json").write_text(json.dumps(config | {"text_config": text_config}))
    (folder / "generation_config.json").unlink(missing_ok=True)
    checkpoint = Checkpoint.read(folder)
    assert (checkpoint.bos_token_id, checkpoint.eos_token_ids, checkpoint.context) == (1, frozenset({2}), 256)


def _refusal(source: str | Path) -> str:
    with pytest.raises(UsageError) as refusal:
        open_policy(source)
    message = str(refusal.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_checkpoint_path_that_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    refused = _refusal(tmp_path / "none")
    assert refused.startswith(f"{tmp_path / 'none'} is not a folder")
    assert "world-conductor, world-warmstart" in refused


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        (["config.json"], "it has no config.json."),
        (["model.safetensors"], "it has no weights (model.safetensors)."),
        (["tokenizer.json", "tokenizer_config.json"], "it has no tokenizer (tokenizer.json)."),
        (["config.json", "model.safetensors"], "it has no config.json and no weights (model.safetensors)."),
    ],
)
def test_refusal_names_the_file_missing_from_a_checkpoint(
    make_checkpoint: Make, gone: list[str], said: str
) -> None:
    folder = make_checkpoint()
    for name in gone:
        (folder / name).unlink()
    assert f"{folder} is not a checkpoint: {said}" in _refusal(folder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", "{", "config.json is not JSON; save the checkpoint again."),
        ("config.json", "[]", "config.json holds no JSON object; save the checkpoint again."),
        ("config.json", "{}", 'config.json does not say its "model_type", so nothing can load it.'),
        ("tokenizer.json", "{}", "tokenizer.json is not a tokenizer; save the checkpoint's tokenizer again."),
        (
            "model.safetensors",
            "version https://git-lfs.github.com/spec/v1\n",
            "model.safetensors is not a whole safetensors file; copy or save the checkpoint again.",
        ),
        ("model.safetensors", "", "safetensors file; copy or save the checkpoint again."),
        (
            "config.json",
            '{"model_type": "llama"}',
            "config.json lacks 'num_attention_heads'; save the checkpoint again.",
        ),
        ("podium.json", "nonsense", "podium.json is not JSON; save the checkpoint again."),
    ],
)
def test_refusal_names_the_damaged_file_of_a_checkpoint(
    make_checkpoint: Make, name: str, content: str, said: str
) -> None:
    folder = make_checkpoint()
    (folder / name).write_text(content)
    assert _refusal(folder).endswith(said)


def test_a_cut_weights_file_is_refused(make_checkpoint: Make) -> None:
    path = make_checkpoint() / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "is not a whole safetensors file" in _refusal(path.parent)


def test_a_tokenizer_larger_than_its_model_is_refused(make_checkpoint: Make) -> None:
    folder = make_checkpoint(vocab_size=100)
    assert "but its model knows 100; the two do not belong together" in _refusal(folder)


def test_an_unknown_key_of_podium_json_is_refused_with_the_nearest(make_checkpoint: Make) -> None:
    with pytest.raises(ConfigError, match="style"):
        Checkpoint.read(make_checkpoint(podium={"prompt": {"stile": "brief"}}))


def test_unknown_checkpoint_name_is_refused_with_the_shipped_names() -> None:
    with pytest.raises(CheckpointError, match=r"warmstat is not a folder.*world-conductor, world-warmstart"):
        Checkpoint.read("warmstat")


_BARE = """
import importlib.util, sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refusing())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("torch", "transformers") else find(name)
import asyncio
from podium.conductor import Sampling, open_policy
from podium.errors import UsageError
from podium.types import Message
policy = open_policy(sys.argv[1])
print(asyncio.run(policy.complete((Message(role="user", content="hi"),), Sampling(max_tokens=3))).usage)
try:
    open_policy(sys.argv[2])
except UsageError as error:
    print(error)
"""


def test_small_llama_runs_without_torch_and_gpt2_asks_to_install_torch(make_checkpoint: Make) -> None:
    small, other = make_checkpoint("llama", name="small"), make_checkpoint("gpt2", name="other")
    done = subprocess.run(
        [sys.executable, "-c", _BARE, str(small), str(other)], capture_output=True, text=True, check=True
    )
    assert "output_tokens=3" in done.stdout
    assert "is a gpt2 checkpoint that needs torch and transformers" in done.stdout
    assert "pip install 'podium-conductor[train]'" in done.stdout
