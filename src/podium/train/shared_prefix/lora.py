"""LoRA for the engine shared_prefix: the matrices of the layers are frozen, and a product of two small ones is trained.

Source: Hu et al. 2021 (arXiv 2106.09685), with peft's initial values, defaults and names. Matrices that are fused here
(query, key and value; gate and up) share their `lora_A`; peft's files hold it once for each of them. Norms, embeddings
and the output head stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from pydantic import Field, ValidationError
from torch import Tensor, nn
from torch.nn import functional as F

from podium.config.source import Settings
from podium.errors import ConfigError
from podium.train.settings import TrainSettings


class LoraSettings(Settings):
    """The arguments of peft's LoraConfig that this engine knows, with peft's defaults."""

    r: int = Field(default=8, ge=1)
    """The rank of the product."""
    lora_alpha: int = Field(default=8, ge=1)
    """The product is scaled by `lora_alpha / r`."""

    @classmethod
    def of(cls, settings: TrainSettings) -> LoraSettings | None:
        """The table `[lora]` of a run. None if all weights are trained.

        Raises:
            ConfigError: the table has another argument, or a wrong value.
        """
        try:
            return None if settings.lora is None else cls.model_validate(settings.lora)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise ConfigError(
                f"lora.{where}: the engine shared_prefix takes lora.r and lora.lora_alpha, whole numbers; leave it "
                'out, or set engine = "trl".',
                ("lora",),
            ) from None


class LoraLinear(nn.Linear):
    """A frozen linear layer of which only a product of low rank, added to its matrix, is trained."""

    def __init__(self, frozen: nn.Linear, lora: LoraSettings, generator: torch.Generator) -> None:
        outputs, inputs = frozen.weight.shape
        super().__init__(inputs, outputs, bias=frozen.bias is not None, device="meta")
        self.weight, self.bias = frozen.weight, frozen.bias
        device = frozen.weight.device
        self.lora_A = nn.Parameter(torch.empty(lora.r, inputs))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5), generator=generator)
        self.lora_A.data = self.lora_A.data.to(device)
        self.lora_B = nn.Parameter(torch.zeros(outputs, lora.r, device=device))
        self.alpha, self.scale = lora.lora_alpha, lora.lora_alpha / lora.r

    def product(self, x: Tensor) -> Tensor:
        """What the trained product adds to the layer's output, in the dtype of `x`."""
        return F.linear(F.linear(x, self.lora_A.to(x.dtype)) * self.scale, self.lora_B.to(x.dtype))

    def merged_weight(self) -> Tensor:
        """The matrix with the product added, in fp32."""
        return self.weight.detach() + self.scale * (self.lora_B.detach() @ self.lora_A.detach())


def add_lora(blocks: Iterable[nn.Module], lora: LoraSettings, generator: torch.Generator) -> None:
    """Give every linear layer of a model's blocks a product to train. At first it is 0."""
    for block in blocks:
        for name, layer in list(block.named_children()):
            if isinstance(layer, nn.Linear):
                setattr(block, name, LoraLinear(layer, lora, generator))


def lora_layers(model: nn.Module) -> Iterator[tuple[str, LoraLinear]]:
    """The layers with a product, by name. There are none if all weights are trained."""
    return ((name, layer) for name, layer in model.named_modules() if isinstance(layer, LoraLinear))
