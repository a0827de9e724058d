"""Initial weights that can already copy.

Copying a span needs two layers that work together: heads that fetch what stood a fixed distance back, and heads that
find the place where the same was said before and fetch what came next ("induction heads", Olsson et al. 2022, arXiv
2209.11895). A small model from plain random weights takes thousands of steps to find the pair. Here they are the
initial weights, in the spirit of "mimetic initialisation" (Trockman and Kolter 2023, arXiv 2305.09828):

- Layer 0: a head looks its fixed distance back, through biases that rotary positions turn into distances, and writes
  what it finds into a subspace of its own, its *slot*.
- Layers 1 and 2: queries hold the current token (and, for some heads, the one before it), keys the slots; the two
  match where the same token stood before, one place on. Values go back out as the tokens that they came from.
- Later layers look for tokens like the current one. What the feed-forward parts add is 0 at first.

Training is free to change all of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from podium.train.model import Layer, PolicyModel, rotate

DISTANCES = (1, 2, 3, 4)
"""Tokens back that the first layer's heads look, in turn."""
_DEVIATION = 0.05
"""Of the embedding's entries, and of whatever is not set here."""
_FAINT = 0.1
"""What is left of the first layer's queries and keys besides their biases."""
_AMPLITUDES = (0.5, 0.2, 0.06, 0.06, 0.06, 0.06, 0.06)
"""Shares of the rotary pairs, from the fastest, in the biases: fast ones tell neighbours apart, slower ones tell
the right distance from those at which the fast ones come round again."""
_POSITION_NATS = 25.0
"""Score of the right distance in the first layer."""
_MATCH_NATS = 12.0
"""Score of one matching token in the layers that look for one."""
_MATCHING = (1, 2)
"""Layers that look for the place where the same stood before."""
_FAST = 1 / 3
"""Share of the rotary pairs that turn too fast to carry what a token is over a hundred positions."""
_LOUD = 2.0
"""How much larger a fetched token is written than it was."""


@torch.no_grad()
def initialise(model: PolicyModel, generator: torch.Generator) -> None:
    """Fresh weights; the model must have biases on queries and keys."""
    model.initialise(generator, _DEVIATION)
    _Start(model, generator).write()


class _Start:
    """The matrices that layers share. Suffixes as in `model`; N the residual stream's width here."""

    def __init__(self, model: PolicyModel, generator: torch.Generator) -> None:
        self.model, self.shape, self.generator = model, model.shape, generator
        shape = self.shape
        N, D, H = shape.hidden, shape.head_size, shape.heads
        self.token_DN = _orthogonal(D, N, generator)
        """What the first layer's heads keep of a token."""
        slots = _orthogonal(N, min(N, H * D), generator)
        self.slots_ND = [slots[:, head * D : (head + 1) * D] for head in range(H) if (head + 1) * D <= N]
        """Where they write it, head by head."""
        self.part = N / (1 + len(self.slots_ND))
        """Squared length of a token's own part, and of each slot, in the normed stream after the first layer."""
        self.carrying = [i for i in range(D) if i % (D // 2) >= _FAST * D / 2]

    def write(self) -> None:
        for index, layer in enumerate(self.model.layers):
            assert isinstance(layer, Layer)
            layer.down.weight.zero_()
            if index == 0:
                self._look_back(layer)
            else:
                self._look_for(layer, matching=index in _MATCHING)

    def _look_back(self, layer: Layer) -> None:
        shape = self.shape
        H, K, D, R = shape.heads, shape.kv_heads, shape.head_size, shape.queries_per_kv
        weight_HDN = layer.qkv.weight.view(H + 2 * K, D, shape.hidden)
        bias_HD = layer.qkv.bias.view(H + 2 * K, D)
        weight_HDN[: H + K] *= _FAINT
        weight_HDN[H + K :] = self.token_DN
        shares = torch.tensor(_AMPLITUDES[: D // 2])
        length = (shares / shares.sum() * _POSITION_NATS * D**0.5).sqrt()
        for key in range(K):
            phase = torch.rand(len(shares), generator=self.generator) * 2 * torch.pi
            bias_HD[H + key, : len(shares)] = length * phase.cos()
            bias_HD[H + key, D // 2 : D // 2 + len(shares)] = length * phase.sin()
            for query in range(key * R, (key + 1) * R):
                distance = DISTANCES[query % len(DISTANCES)]
                bias_HD[query] = self._turned_back(bias_HD[H + key], distance)
        output_NHD = layer.output.weight.view(shape.hidden, H, D)
        for head, slot_ND in enumerate(self.slots_ND):
            output_NHD[:, head] = slot_ND * (_DEVIATION * (shape.hidden / D) ** 0.5)

    def _turned_back(self, bias_D: Tensor, distance: int) -> Tensor:
        """The query that fits the key `bias_D` best when that stands `distance` tokens earlier."""
        cosine, sine = (part.float() for part in self.model.rotary(torch.tensor([float(distance)])))
        return rotate(bias_D.view(1, 1, -1), (cosine, -sine)).flatten()

    def _look_for(self, layer: Layer, *, matching: bool) -> None:
        shape = self.shape
        H, K, D, R = shape.heads, shape.kv_heads, shape.head_size, shape.queries_per_kv
        weight_HDN = layer.qkv.weight.view(H + 2 * K, D, shape.hidden)
        output_NHD = layer.output.weight.view(shape.hidden, H, D)
        values = _orthogonal(shape.hidden, shape.hidden, self.generator)
        for key in range(K):
            start = key * D % (shape.hidden - D + 1)
            value_DN = values[start : start + D]
            weight_HDN[H + K + key] = value_DN
            queries = slice(key * R, (key + 1) * R)
            output_NHD[:, queries] = (value_DN.T * (_LOUD * _DEVIATION / R)).unsqueeze(1)
            if matching and len(self.slots_ND) > 1:
                weight_HDN[H + key], weight_HDN[queries] = self._match(R)
            else:
                own = self.part * D / shape.hidden * len(self.carrying) / D
                same_DN = self._scatter() @ _orthogonal(D, shape.hidden, self.generator)
                weight_HDN[H + key] = same_DN * (_MATCH_NATS * D**0.5 / own) ** 0.5
                weight_HDN[queries] = weight_HDN[H + key]

    def _match(self, queries: int) -> tuple[Tensor, Tensor]:
        """Keys [D, N] of the last two tokens; queries [R, D, N] of the current one, every second also of the last."""
        D, N = self.shape.head_size, self.shape.hidden
        share = len(self.carrying) / D
        # A token's own part is read through D of N directions and a slot through all of its own: level them.
        seen = (self.part * D / N * share, self.part * share)
        level = (seen[1] / seen[0]) ** 0.25
        scale = (_MATCH_NATS * D**0.5 / (seen[0] * seen[1]) ** 0.5) ** 0.5
        first_DD, second_DD = self._scatter(), self._scatter()
        last_DN, before_DN = self.slots_ND[0].T, self.slots_ND[1].T
        key_DN = (first_DD @ last_DN + second_DD @ before_DN) * (scale / level)
        current_DN = first_DD @ self.token_DN * (scale * level)
        longer_DN = current_DN + second_DD @ last_DN * (scale / level)
        return key_DN, torch.stack([longer_DN if query % 2 else current_DN for query in range(queries)])

    def _scatter(self) -> Tensor:
        """[D, D]: a random rotation onto the dimensions that rotary positions turn slowly."""
        matrix_DD = torch.zeros(self.shape.head_size, self.shape.head_size)
        matrix_DD[self.carrying] = _orthogonal(len(self.carrying), self.shape.head_size, self.generator)
        return matrix_DD


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """A random matrix with orthonormal columns, or rows if there are fewer of them."""
    made: Tensor = torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns), generator=generator)).Q
    return made if rows >= columns else made.T
