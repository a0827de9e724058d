"""The policy's language model in plain torch, in the form of Llama and Qwen2. A group shares the prefill of its prompt.

The same layers run in four ways: on whole sequences (supervised training), on prompts, on completions that attend to
their prompt's keys and values, and on single tokens (sampling). Only the `Attend` function differs. `checkpoints` reads
and writes the weights, and `sampler` samples. The tensors of ids, cells, positions and lengths are on the processor,
even if the model is on a GPU. Shape suffixes: N tokens, B sequences, Q questions, G rows of a group, T and P positions,
H heads, K key/value heads, D head size (or hidden size, after N alone), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from podium.train.shape import ModelShape
from podium.train.shared_prefix.attention import QueryLayout, attend_shared
from podium.train.shared_prefix.lora import LoraLinear, lora_layers

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""(layer, query_NHD, key_NKD, value_NKD) -> mixed values [N, H*D]. Queries and keys carry their rotary positions."""


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """The keys and values of the prompts in each layer, to which completions attend."""

    keys: tuple[Tensor, ...]
    """[Q, K, P, D] of each layer, rotated."""
    values: tuple[Tensor, ...]
    lengths_Q: Tensor
    """The length of each prompt, on the processor. Later positions are padding."""

    def bias(self, dtype: torch.dtype) -> Tensor | None:
        """[Q, 1, P]: 0 for a token and -inf for padding. None if nothing is padded."""
        P = self.keys[0].shape[2]
        padding_QP = torch.arange(P) >= self.lengths_Q.unsqueeze(1)
        if not bool(padding_QP.any()):
            return None
        bias_QP = torch.zeros(padding_QP.shape, dtype=dtype).masked_fill_(padding_QP, -torch.inf)
        return bias_QP.unsqueeze(1).to(self.keys[0].device)


class Norm(nn.Module):
    """Root-mean-square norm, always in fp32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x_ND: Tensor) -> Tensor:
        normed: Tensor = F.rms_norm(x_ND, (x_ND.shape[-1],), self.weight, self.eps)
        return normed


class Layer(nn.Module):
    """One pre-norm block. Queries, keys and values share one matrix, and gate and up share another, for larger
    products."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.attention_norm = Norm(shape.hidden, shape.norm_eps)
        self.qkv = nn.Linear(
            shape.hidden, (shape.heads + 2 * shape.kv_heads) * shape.head_size, bias=shape.qkv_bias
        )
        self.output = nn.Linear(shape.heads * shape.head_size, shape.hidden, bias=False)
        self.inner_norm = Norm(shape.hidden, shape.norm_eps)
        self.gate_up = nn.Linear(shape.hidden, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(
        self, index: int, x_ND: Tensor, rotary: tuple[Tensor, Tensor], attend: Attend, dtype: torch.dtype
    ) -> Tensor:
        """The residual stream after this layer, in fp32. The matrix products run in `dtype`."""
        shape = self.shape
        qkv = linear(self.attention_norm(x_ND), self.qkv, dtype).view(len(x_ND), -1, shape.head_size)
        query_key = rotate(qkv[:, : shape.heads + shape.kv_heads], rotary)
        mixed = attend(
            index, query_key[:, : shape.heads], query_key[:, shape.heads :], qkv[:, -shape.kv_heads :]
        )
        x_ND = x_ND + linear(mixed, self.output, dtype)
        gate, up = linear(self.inner_norm(x_ND), self.gate_up, dtype).chunk(2, dim=-1)
        return x_ND + linear(F.silu(gate) * up, self.down, dtype)


class PolicyModel(nn.Module):
    """A causal language model. Its parameters are fp32, and its matrix products run in `dtype`."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, shape.norm_eps)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        if shape.tied:
            self.head.weight = self.embedding.weight
        self.dtype = torch.float32

    @property
    def device(self) -> torch.device:
        """The device that holds the weights."""
        return self.embedding.weight.device

    def initialise(self, generator: torch.Generator, deviation: float = 0.02) -> None:
        """Fresh weights from a named generator, as Hugging Face initialises them."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" in name:
                nn.init.ones_(parameter)
            else:
                nn.init.normal_(parameter, std=deviation, generator=generator)

    def inference_copy(self) -> PolicyModel:
        """A copy for inference: its weights are cast to `dtype` once and have no gradients."""
        with torch.device("meta"):  # No memory, and no random weights, which the next line would replace.
            copy = PolicyModel(self.shape)
        weights = {name: weight.detach().clone() for name, weight in self.full_weights().items()}
        if self.shape.tied:
            weights["head.weight"] = weights["embedding.weight"]
        copy.load_state_dict(weights, assign=True)
        copy.dtype = self.dtype
        for module in copy.modules():
            if isinstance(module, nn.Linear):
                module.weight = nn.Parameter(module.weight.detach().to(self.dtype))
                if module.bias is not None:
                    module.bias = nn.Parameter(module.bias.detach().to(self.dtype))
        return copy.requires_grad_(False)

    def full_weights(self) -> dict[str, Tensor]:
        """The weights by name. The products of a LoRA are added to their matrices."""
        weights = {
            name: weight
            for name, weight in self.state_dict().items()
            if not name.endswith((".lora_A", ".lora_B"))
        }
        return weights | {f"{name}.weight": layer.merged_weight() for name, layer in lora_layers(self)}

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Logits [B, T, V] of whole sequences. Pad them on the right, so that no token attends to padding."""
        return self.logits(self.sequences(tokens_BT))

    def sequences(self, tokens_BT: Tensor) -> Tensor:
        """Hidden states [B, T, hidden] of whole sequences, for a caller that needs the logits of only some tokens."""
        B, T = tokens_BT.shape
        attend = _Causal(self.shape, B, T, self.dtype, self.device)
        return self.run(tokens_BT.flatten(), torch.arange(T).repeat(B), attend).view(B, T, -1)

    def prompt(self, tokens_QP: Tensor, lengths_Q: Tensor) -> PromptKeys:
        """Keys and values of prompts, padded on the right to P positions. Gradients flow through them."""
        Q, P = tokens_QP.shape
        attend = _Causal(self.shape, Q, P, self.dtype, self.device)
        self.run(tokens_QP.flatten(), torch.arange(P).repeat(Q), attend)
        return PromptKeys(tuple(attend.keys), tuple(attend.values), lengths_Q)

    def completions(self, tokens_N: Tensor, cells_N: Tensor, grid_GT: Tensor, prompt: PromptKeys) -> Tensor:
        """Hidden states [N, hidden] of completion tokens of one question, which attend to its prompt and their own row.

        Args:
            tokens_N: the tokens, without padding. A common beginning occurs once.
            cells_N: the cell of each token in the flattened [G, T]. If a token has several cells, any of them.
            grid_GT: the token in each cell of each row. In the padding it is any token. Each row is filled from
                position 0 on, and its positions continue those of the prompt.
            prompt: the keys and values of a single prompt.
        """
        attend = _Shared(self.shape, cells_N, grid_GT, prompt)
        return self.run(tokens_N, prompt.lengths_Q + cells_N % grid_GT.shape[1], attend)

    def run(self, tokens_N: Tensor, positions_N: Tensor, attend: Attend) -> Tensor:
        """Hidden states [N, hidden] after the final norm. `attend` decides which tokens attend to which."""
        x_ND = self.embedding(tokens_N.to(self.device))
        rotary = self.rotary(positions_N.to(self.device))
        for index, layer in enumerate(self.layers):
            x_ND = layer(index, x_ND, rotary, attend, self.dtype)
        hidden_ND: Tensor = self.norm(x_ND)
        return hidden_ND

    def logits(self, hidden_N: Tensor) -> Tensor:
        """[..., V], in the dtype of the products."""
        return linear(hidden_N, self.head, self.dtype)

    def logprobs(self, hidden_ND: Tensor, targets_N: Tensor, temperature: float = 1.0) -> Tensor:
        """log p(target) [N] in fp32, with much less memory traffic than computing the logits first."""
        return token_logprobs(
            hidden_ND.to(self.dtype),
            self.head.weight.to(self.dtype),
            targets_N.to(self.device),
            temperature=temperature,
        )

    def rotary(self, positions_N: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [N, 1, D] of the rotary positions, in the dtype of the products."""
        D = self.shape.head_size
        frequency = self.shape.rope_theta ** (
            -torch.arange(0, D, 2, dtype=torch.float32, device=positions_N.device) / D
        )
        angle_ND = torch.outer(positions_N.float(), frequency).repeat(1, 2).unsqueeze(1)
        return angle_ND.cos().to(self.dtype), angle_ND.sin().to(self.dtype)


def linear(x: Tensor, layer: nn.Linear, dtype: torch.dtype) -> Tensor:
    """`layer(x)` with the product in `dtype`. Parameters stay fp32."""
    bias = None if layer.bias is None else layer.bias.to(dtype)
    x = x.to(dtype)
    output = F.linear(x, layer.weight.to(dtype), bias)
    return output + layer.product(x) if isinstance(layer, LoraLinear) else output


def rotate(x_NHD: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary positions. Dimensions are paired by halves, as in Hugging Face."""
    cosine, sine = rotary
    first, second = x_NHD.chunk(2, dim=-1)
    return x_NHD * cosine + torch.cat((-second, first), dim=-1) * sine


class _Causal:
    """Attention within whole sequences. It keeps the keys and values of each layer."""

    def __init__(
        self, shape: ModelShape, batch: int, length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.shape, self.batch, self.length = shape, batch, length
        self.causal_MT = _causal(length, shape.queries_per_kv, dtype, device)
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor) -> Tensor:
        query, key, value = (
            x.reshape(self.batch, self.length, -1, self.shape.head_size).transpose(1, 2)
            for x in (query_NHD, key_NKD, value_NKD)
        )
        self.keys.append(key)
        self.values.append(value)
        # This is written by hand, since the backward pass of torch's fused attention is slow on a CPU.
        B, T, D = self.batch, self.length, self.shape.head_size
        K = self.shape.kv_heads
        scores = torch.baddbmm(
            self.causal_MT,
            query.reshape(B * K, -1, D) * D**-0.5,
            key.reshape(B * K, T, D).transpose(1, 2),
        )
        mixed = torch.bmm(scores.softmax(-1), value.reshape(B * K, T, D)).view(B, -1, T, D)
        return mixed.transpose(1, 2).reshape(self.batch * self.length, -1)


class _Shared:
    """Attention of packed completion tokens to their prompt and their own past (`attend_shared`)."""

    def __init__(self, shape: ModelShape, cells_N: Tensor, grid_GT: Tensor, prompt: PromptKeys) -> None:
        self.prompt, (self.rows, length) = prompt, grid_GT.shape
        dtype, device = prompt.keys[0].dtype, prompt.keys[0].device
        K, R, N = shape.kv_heads, shape.queries_per_kv, len(cells_N)
        head, query = torch.arange(K).view(1, -1, 1), torch.arange(R).view(1, 1, -1)
        number, row, position = (
            x.view(-1, 1, 1)
            for x in (torch.arange(N), cells_N.div(length, rounding_mode="floor"), cells_N % length)
        )
        # Indices in [K, R, N] for the prompt, and in [K, G, R, T] for the own row.
        self.layout = QueryLayout(
            prompt_index_N=((head * R + query) * N + number).flatten().to(device),
            prompt_rows=R * N,
            own_index_N=(((head * self.rows + row) * R + query) * length + position).flatten().to(device),
        )
        self.key_sources = (grid_GT * K + torch.arange(K).view(-1, 1, 1)).flatten().to(device)
        """[K*G*T]: the head and the token of each cell."""
        self.causal_MT = _causal(length, R, dtype, device)

    def __call__(self, layer: int, query_NHD: Tensor, key_NKD: Tensor, value_NKD: Tensor) -> Tensor:
        K, D = key_NKD.shape[1:]
        key, value = (
            x.reshape(-1, D).index_select(0, self.key_sources).view(K, self.rows, -1, D)
            for x in (key_NKD, value_NKD)
        )
        mixed = attend_shared(
            query_NHD.reshape(-1, D),
            self.prompt.keys[layer].squeeze(0),
            self.prompt.values[layer].squeeze(0),
            key,
            value,
            layout=self.layout,
            causal_MT=self.causal_MT,
        )
        return mixed.view(len(query_NHD), -1)


def _causal(length: int, queries_per_kv: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[queries_per_kv * T, T]: 0 where a query may attend to a position of its own row, -inf elsewhere."""
    mask_TT = torch.full((length, length), -torch.inf, dtype=dtype, device=device).triu_(1)
    return mask_TT.repeat(queries_per_kv, 1)


_SLICE = 256
"""Tokens of a slice: 2 MB of fp32 for a vocabulary of 2,000."""


class _TokenLogprobs(torch.autograd.Function):
    """The autograd step of `token_logprobs`. The backward pass overwrites the saved logits, so it can run only once.

    The logits are by far the largest tensor of a micro-batch. They are computed once, then read and written in slices
    that fit into the processor's cache. The backward pass turns them into their own gradient in place.
    """

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, scale: float) -> Tensor:
        logits_NV = hidden_ND @ weight_VD.T
        total_N1 = logits_NV.new_empty(len(targets_N), 1, dtype=torch.float32)
        chosen_N1 = torch.empty_like(total_N1)
        for at in _slices(len(targets_N)):
            slice_NV = logits_NV[at].float() * scale
            total_N1[at] = slice_NV.logsumexp(-1, keepdim=True)
            chosen_N1[at] = slice_NV.gather(1, targets_N[at].unsqueeze(1))
        ctx.save_for_backward(hidden_ND, weight_VD, targets_N, total_N1)
        ctx.logits_NV, ctx.scale = logits_NV, scale
        return (chosen_N1 - total_N1).squeeze(1)

    @staticmethod
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor | None, ...]:
        hidden_ND, weight_VD, targets_N, total_N1 = ctx.saved_tensors
        grad_NV, ctx.logits_NV = ctx.logits_NV, None
        scaled_N1 = grad_N.unsqueeze(1) * ctx.scale
        for at in _slices(len(targets_N)):
            # d log p(target) / d logits = one at the target - probabilities
            slice_NV = grad_NV[at].float().mul_(ctx.scale).sub_(total_N1[at]).exp_().mul_(-scaled_N1[at])
            slice_NV.scatter_add_(1, targets_N[at].unsqueeze(1), scaled_N1[at])
            grad_NV[at] = slice_NV
        grad_weight_VD = grad_NV.T @ hidden_ND if ctx.needs_input_grad[1] else None
        return grad_NV @ weight_VD, grad_weight_VD, None, None


def token_logprobs(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """log p(target) of each of N tokens, in fp32, computed from hidden states and output matrix in one autograd step.

    Args:
        hidden_ND: hidden states after the final norm, in the dtype of the products. `weight_VD` has the same dtype.
        temperature: the number that the logits are divided by.
    """
    logprobs_N: Tensor = _TokenLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, targets_N, 1.0 / temperature
    )
    return logprobs_N


def _slices(count: int) -> list[slice]:
    return [slice(start, start + _SLICE) for start in range(0, count, _SLICE)]
