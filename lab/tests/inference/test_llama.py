"""The NumPy model against transformers."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from podium.conductor.checkpoint import Checkpoint, is_llama
from podium.errors import CheckpointError
from podium_lab.inference.llama import Llama, Shape, read_weights

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, every head its own keys": ("llama", {"num_key_value_heads": 4}),
    "llama, one head of keys": ("llama", {"num_key_value_heads": 1}),
    "llama, wide heads": ("llama", {"head_dim": 20}),
    "llama, attention biases": ("llama", {"attention_bias": True}),
    "llama, mlp biases": ("llama", {"mlp_bias": True}),
    "llama, long rotation": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}),
    "qwen2": ("qwen2", {}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}),
}


def _load(folder: Path) -> Llama:
    return Llama(Shape.of(Checkpoint.read(folder).config), read_weights(folder / "model.safetensors"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_those_of_transformers(
    make_checkpoint: Callable[..., Path], shape: str, dtype: torch.dtype
) -> None:
    kind, changes = SHAPES[shape]
    folder = make_checkpoint(kind, dtype=dtype, **changes)
    tokens = torch.randint(3, 320, (1, 70), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        expected = model(tokens).logits[0].numpy()

    llama = _load(folder)
    found = llama.logits(llama.read(tokens[0].tolist(), llama.start(70)))

    assert np.ptp(expected) > 1  # or the next line would say little
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("cuts", [[1], [69], [10, 11, 40], list(range(1, 70))], ids=len)
def test_reading_in_pieces_is_reading_at_once(make_checkpoint: Callable[..., Path], cuts: list[int]) -> None:
    llama = _load(make_checkpoint("qwen2"))
    tokens = np.random.default_rng(0).integers(3, 320, 70).tolist()
    whole = llama.read(tokens, llama.start(70))

    cache = llama.start(80)
    bounds = [0, *cuts, 70]
    pieces = [llama.read(tokens[a:b], cache) for a, b in pairwise(bounds)]

    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-4)


def test_later_token_does_not_change_earlier_hidden_states(make_checkpoint: Callable[..., Path]) -> None:
    llama = _load(make_checkpoint("llama"))
    one = llama.read([5, 6, 7, 8], llama.start(4))
    other = llama.read([5, 6, 7, 300], llama.start(4))
    np.testing.assert_allclose(one[:3], other[:3], atol=1e-6)
    assert np.abs(one[3] - other[3]).max() > 0.1


def test_extreme_gates_neither_warn_nor_overflow(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint("llama")
    weights = {name: array * 1000 for name, array in read_weights(folder / "model.safetensors").items()}
    llama = Llama(Shape.of(Checkpoint.read(folder).config), weights)
    with np.errstate(all="raise", under="ignore"):
        states = llama.read([5, 6, 7], llama.start(3))
    assert np.isfinite(states).all()


def test_a_missing_tensor_is_named(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint("llama")
    weights = read_weights(folder / "model.safetensors")
    del weights["model.layers.2.mlp.up_proj.weight"]
    with pytest.raises(CheckpointError, match=r"lack model\.layers\.2\.mlp\.up_proj\.weight"):
        Llama(Shape.of(Checkpoint.read(folder).config), weights)


def test_weights_of_another_configuration_are_refused(make_checkpoint: Callable[..., Path]) -> None:
    config = dict(Checkpoint.read(make_checkpoint("llama")).config)
    weights = read_weights(make_checkpoint("llama") / "model.safetensors")
    for other in ({"num_key_value_heads": 4}, {"intermediate_size": 8}):
        with pytest.raises(CheckpointError, match="do not belong together"):
            Llama(Shape.of(config | other), weights)
    for name, weight in weights.items():
        shorter = weights | {name: weight[..., :-1]}
        with pytest.raises(CheckpointError, match="do not belong together"):
            Llama(Shape.of(config), shorter)


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"model_type": "llama"}, True),
        ({"model_type": "qwen2", "use_sliding_window": False}, True),
        ({"model_type": "qwen2", "use_sliding_window": True}, False),
        ({"model_type": "qwen3"}, False),
        ({"model_type": "gpt2"}, False),
        ({"model_type": "llama", "hidden_act": "gelu"}, False),
        ({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, False),
        ({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 2.0}}, False),
        ({"model_type": "llama", "rope_scaling": None, "rope_theta": 5e5}, True),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}, True),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, False),
    ],
)
def test_is_llama_accepts_only_configurations_that_numpy_computes_exactly(
    config: dict[str, Any], answer: bool
) -> None:
    assert is_llama(config) is answer


def test_the_rotation_of_transformers_4_is_read() -> None:
    config = {
        "num_attention_heads": 4,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-6,
        "rope_theta": 300.0,
    }
    shape = Shape.of(config)
    assert (shape.rope_theta, shape.key_heads, shape.head_dim) == (300.0, 4, 12)
