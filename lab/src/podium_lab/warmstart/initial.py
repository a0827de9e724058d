"""Initial weights with which a model can copy before it is trained.

Copying a span takes two layers: in the first, heads fetch the token a fixed distance back; in the second, heads find an
earlier occurrence of the current token and fetch the token that followed it ("induction heads", Olsson et al. 2022,
arXiv 2209.11895). A small model takes thousands of steps to find this pair from random weights. Here the initial
weights contain it, in the spirit of "mimetic initialisation" (Trockman and Kolter 2023, arXiv 2305.09828):

- Layer 0: each head attends a fixed distance back. Its biases, turned by the rotary positions, select the distance. It
  writes the token that it finds into a subspace of its own, its *slot*.
- Layers 1 and 2: a query holds the current token (and, for some heads, the one before it), a key holds the slots. They
  match one position after an earlier occurrence of the current token. Values are written back as the tokens they were.
- Later layers attend to tokens like the current one. The feed-forward parts add 0 at first.

Training may change all of these weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from podium.train.shared_prefix.policy_model import Layer, PolicyModel, rotate

DISTANCES = (1, 2, 3, 4)
"""How many tokens back the heads of the first layer attend, in turn."""
_STANDARD_DEVIATION = 0.05
"""Standard deviation of the embedding's entries, and of all weights that this module does not set."""
_QUERY_KEY_SCALE = 0.1
"""The first layer's query and key weights are scaled by this, so that their biases dominate."""
_AMPLITUDES = (0.5, 0.2, 0.06, 0.06, 0.06, 0.06, 0.06)
"""Shares of the rotary pairs in the biases, the fastest pair first. Fast pairs distinguish neighbouring positions;
slower pairs distinguish the right distance from those at which the fast pairs have turned full circle."""
_POSITION_NATS = 25.0
"""Attention score of the right distance in the first layer."""
_MATCH_NATS = 12.0
"""Attention score of one matching token in the matching layers."""
_MATCHING = (1, 2)
"""Layers that attend to earlier occurrences of the current token."""
_FAST_SHARE = 1 / 3
"""Share of the rotary pairs that turn too fast to match tokens over a hundred positions."""
_WRITE_SCALE = 2.0
"""A fetched token is written back this many times larger."""


@torch.no_grad()
def initialise(model: PolicyModel, generator: torch.Generator) -> None:
    """Set fresh weights. The model must have biases on queries and keys."""
    model.initialise(generator, _STANDARD_DEVIATION)
    _Start(model, generator).write()


class _Start:
    """Writes the initial weights. Shape suffixes as in `model`, but N is the width of the residual stream."""

    def __init__(self, model: PolicyModel, generator: torch.Generator) -> None:
        self.model, self.shape, self.generator = model, model.shape, generator
        shape = self.shape
        N, D, H = shape.hidden, shape.head_size, shape.heads
        self.token_DN = _orthogonal(D, N, generator)
        """The projection of a token that the first layer's heads fetch."""
        slots = _orthogonal(N, min(N, H * D), generator)
        self.slots_ND = [slots[:, head * D : (head + 1) * D] for head in range(H) if (head + 1) * D <= N]
        """The slots into which they write it, one for each head."""
        self.part = N / (1 + len(self.slots_ND))
        """Squared length of the token's own part, and of each slot, in the normed stream after the first layer."""
        self.slow_dimensions = [i for i in range(D) if i % (D // 2) >= _FAST_SHARE * D / 2]

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
        weight_HDN[: H + K] *= _QUERY_KEY_SCALE
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
            output_NHD[:, head] = slot_ND * (_STANDARD_DEVIATION * (shape.hidden / D) ** 0.5)

    def _turned_back(self, bias_D: Tensor, distance: int) -> Tensor:
        """The query that matches the key `bias_D` best when the key is `distance` tokens earlier."""
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
            output_NHD[:, queries] = (value_DN.T * (_WRITE_SCALE * _STANDARD_DEVIATION / R)).unsqueeze(1)
            if matching and len(self.slots_ND) > 1:
                weight_HDN[H + key], weight_HDN[queries] = self._match(R)
            else:
                own = self.part * D / shape.hidden * len(self.slow_dimensions) / D
                same_DN = self._scatter() @ _orthogonal(D, shape.hidden, self.generator)
                weight_HDN[H + key] = same_DN * (_MATCH_NATS * D**0.5 / own) ** 0.5
                weight_HDN[queries] = weight_HDN[H + key]

    def _match(self, queries: int) -> tuple[Tensor, Tensor]:
        """Keys [D, N] and queries [R, D, N] that match earlier occurrences of the current token.

        A key holds the two tokens before its position. Each query looks for the current token, every second query also
        for the token before it.
        """
        D, N = self.shape.head_size, self.shape.hidden
        share = len(self.slow_dimensions) / D
        # A token's own part is read through D of its N directions, a slot through all of its own. Make them equal.
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
        matrix_DD[self.slow_dimensions] = _orthogonal(
            len(self.slow_dimensions), self.shape.head_size, self.generator
        )
        return matrix_DD


def _orthogonal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """A random matrix with orthonormal columns, or rows if there are fewer of them."""
    made: Tensor = torch.linalg.qr(torch.randn(max(rows, columns), min(rows, columns), generator=generator)).Q
    return made if rows >= columns else made.T
