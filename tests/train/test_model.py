"""The model's forms agree with each other and with transformers."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

from podium.conductor.checkpoint import Checkpoint
from podium.errors import CheckpointError
from podium.train.objective import mean_over_tokens
from podium.train.runtime import named_generator
from podium.train.shape import ModelShape
from podium.train.shared_prefix.batch import micro_batches
from podium.train.shared_prefix.checkpoints import companion_files, read_model, write_model
from podium.train.shared_prefix.policy_model import PolicyModel, token_logprobs
from tiny_run import SHAPE, make_group, write_start

SHAPES = {
    "grouped queries, tied": SHAPE,
    "own heads, untied": ModelShape(
        vocab=23, hidden=24, layers=2, heads=3, kv_heads=3, head_size=8, inner=40, positions=64, tied=False
    ),
    "biases": ModelShape(
        vocab=23, hidden=24, layers=1, heads=4, kv_heads=1, head_size=6, inner=40, positions=64, qkv_bias=True
    ),
}


def fresh(shape: ModelShape) -> PolicyModel:
    model = PolicyModel(shape)
    model.initialise(named_generator("tests/model"), deviation=0.2)
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            torch.nn.init.normal_(parameter, 1.0, 0.3, generator=named_generator(name))
    return model


def tokens(*size: int) -> torch.Tensor:
    return torch.randint(3, 23, size, generator=named_generator(f"tokens/{size}"))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_transformers_loads_what_is_written_and_computes_the_same(
    tmp_path: Path, shape: ModelShape, dtype: str
) -> None:
    start = write_start(tmp_path / "start", shape)
    folder = tmp_path / "written"
    write_model(
        fresh(shape), folder, config=start.config, companions=companion_files(start.path), dtype=dtype
    )
    assert len({file.stat().st_mode for file in folder.iterdir()}) == 1, "all may be read by the same people"
    theirs, report = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    ours = read_model(Checkpoint.read(folder))
    sequence = tokens(3, 17)
    torch.testing.assert_close(ours(sequence), theirs(sequence).logits, atol=2e-5, rtol=1e-4)
    assert AutoTokenizer.from_pretrained(folder).eos_token_id == 2
    assert (folder / "podium.json").read_bytes() == (start.path / "podium.json").read_bytes()


def test_a_qwen2_model_of_transformers_is_read(tmp_path: Path) -> None:
    config = Qwen2Config(
        vocab_size=23, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, rope_parameters={"rope_theta": 5e4, "rope_type": "default"},
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = Qwen2ForCausalLM(config)
    torch.nn.init.normal_(theirs.model.layers[0].self_attn.k_proj.bias)
    theirs.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    sequence = tokens(2, 9)
    ours = read_model(Checkpoint.read(tmp_path))
    torch.testing.assert_close(ours(sequence), theirs(sequence).logits, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_completions_that_share_a_prompt_equal_whole_sequences(shape: ModelShape) -> None:
    model = fresh(shape)
    start, G, T = tokens(1, 9), 3, 6
    completions, row_lengths = tokens(G, T), torch.tensor([6, 2, 4])
    cells = (torch.arange(T) < row_lengths.unsqueeze(1)).flatten().nonzero().flatten()
    aim = torch.randn(len(cells), shape.vocab, generator=named_generator("aim"))

    prompt = model.prompt(start, torch.tensor([9]))
    grid = torch.zeros(G * T, dtype=torch.long).scatter_(0, cells, torch.arange(len(cells))).view(G, T)
    hidden = model.completions(completions.flatten()[cells], cells, grid, prompt)
    shared = model.logits(hidden)
    (shared * aim).sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()

    rows = [torch.cat((start[0], row[:length])) for row, length in zip(completions, row_lengths, strict=True)]
    separate = torch.cat([model(row.unsqueeze(0))[0, 9:] for row in rows])
    (separate * aim).sum().backward()

    torch.testing.assert_close(shared, separate, atol=2e-5, rtol=1e-4)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, atol=1e-3, rtol=1e-3, msg=name)


def test_padding_on_the_right_changes_no_real_logit() -> None:
    model = fresh(SHAPE)
    short, padded = tokens(2, 7), torch.zeros(2, 12, dtype=torch.long)
    padded[:, :7] = short
    torch.testing.assert_close(model(padded)[:, :7], model(short), atol=1e-5, rtol=1e-5)


def test_bf16_is_close_to_fp32() -> None:
    model = fresh(SHAPE)
    exact = model(tokens(2, 9)).log_softmax(-1)
    model.dtype = torch.bfloat16
    assert (model(tokens(2, 9)).float().log_softmax(-1) - exact).abs().mean() < 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "is a 'gpt2' model; this trainer supports llama and qwen2."),
        ({"rope_scaling": {"rope_type": "yarn"}}, "scaled rotary positions"),
        ({"hidden_act": "gelu"}, "an activation other than silu"),
        ({"hidden_size": 48}, "does not fit its config.json: embedding.weight should be"),
    ],
)
def test_a_checkpoint_that_cannot_be_trained_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    start = write_start(tmp_path / "start")
    with pytest.raises(CheckpointError, match=message):
        read_model(Checkpoint(start.path, dict(start.config) | change, start.prompt))


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("model.layers.0.self_attn.o_proj.bias", True),  # Of a Llama with attention_bias.
        ("lm_head.weight", False),  # A copy, since the head is the embedding.
        ("model.layers.0.self_attn.rotary_emb.inv_freq", False),
    ],
)
def test_unused_weights_in_a_checkpoint_are_refused(tmp_path: Path, name: str, refused: bool) -> None:
    start = write_start(tmp_path / "start")
    path = start.path / "model.safetensors"
    save_file({**load_file(path), name: torch.ones(32)}, path)
    with pytest.raises(CheckpointError, match=f"has {name}, which") if refused else nullcontext():
        read_model(start)


@pytest.mark.parametrize("count", [1, 256, 700])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_gradients_equal_those_of_a_plain_log_softmax(
    count: int, temperature: float, dtype: torch.dtype
) -> None:
    draw = named_generator(f"{count}")
    hidden = torch.randn(count, 12, generator=draw, dtype=dtype).requires_grad_()
    weight = torch.randn(31, 12, generator=draw, dtype=dtype).requires_grad_()
    targets = torch.randint(31, (count,), generator=draw)
    aim = torch.randn(count, generator=draw, dtype=dtype)

    plain = (hidden @ weight.T / temperature).log_softmax(-1).gather(1, targets.unsqueeze(1)).squeeze(1)
    expected = torch.autograd.grad((plain * aim).sum(), (hidden, weight))
    fused = token_logprobs(hidden, weight, targets, temperature=temperature)
    found = torch.autograd.grad((fused * aim).sum(), (hidden, weight))

    torch.testing.assert_close(fused.to(dtype), plain, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_a_token_that_is_nearly_impossible_has_a_finite_logprob() -> None:
    hidden = torch.tensor([[100.0, 0.0]], requires_grad=True)
    logprobs = token_logprobs(hidden, torch.eye(2), torch.tensor([1]))
    logprobs.sum().backward()
    assert logprobs.item() == -100.0
    assert hidden.grad.tolist() == [[-1.0, 1.0]]


def test_model_on_another_device_gets_all_its_tensors_there() -> None:
    """On torch's device without values, which refuses a tensor of the processor among its own."""
    group = make_group((5, 6, 7), ((8, 9), (8, 10, 11)), (1.0, -1.0))
    (batch,) = micro_batches([group], mean_over_tokens, max_tokens=9)
    with torch.device("meta"):
        model = PolicyModel(SHAPE)

    prompt = model.prompt(torch.tensor([[5, 6], [5, 0]]), torch.tensor([2, 1]))
    assert prompt.bias(torch.float32).is_meta
    prompt = model.prompt(batch.prompt_1P, torch.tensor([2]))
    hidden_ND = model.completions(batch.inputs_N, batch.cells_N, batch.grid_GT, prompt)
    logprobs_N = model.logprobs(hidden_ND, batch.targets_N)
    torch.autograd.backward(logprobs_N.sum())

    assert logprobs_N.shape == batch.targets_N.shape
    assert all(weight.grad is not None and weight.grad.is_meta for weight in model.parameters())
    assert model(torch.zeros(2, 5, dtype=torch.long)).is_meta
