"""How torch runs here: environment variables of the process, dtype of the matrix products, named random generators.

Importing this module does not load torch, because the command line calls `missing_variables` before torch starts.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from podium.shipped import shipped_checkpoint

if TYPE_CHECKING:
    import torch

_WANTED = {
    # Otherwise threads spin while they wait, and beside another busy process training is up to 20 times slower.
    "OMP_WAIT_POLICY": "PASSIVE",
}
_WANTED_BY_TINY = {
    # A tiny policy's products are too small to split: two threads took 4.9 s an iteration, one 2.8 s.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    # Otherwise the allocator maps memory anew for each large tensor and unmaps it right after use.
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
}

_TINY_BYTES = 200_000_000
"""Of weights: 50 million parameters in fp32. A model of 135 million trains half as fast on one thread, and its memory
grows without bound where nothing is mapped."""

Precision = Literal["auto", "fp32", "bf16"]


def missing_variables(environ: Mapping[str, str], *, tiny: bool = True) -> dict[str, str]:
    """Environment variables that make torch fast on a CPU, with their values, without those that the user has set.

    They take effect only if they are set before torch is loaded, so the caller sets them and starts the process again.

    Args:
        tiny: whether the trained model is, see `trains_tiny`.
    """
    wanted = _WANTED | _WANTED_BY_TINY if tiny else _WANTED
    return {name: value for name, value in wanted.items() if name not in environ}


def trains_tiny(words: Sequence[str]) -> bool:
    """Whether `podium train` with these arguments trains a tiny model, as the stages of installed packages do.

    Other models, and those that lie elsewhere, are not. What is wrong with the arguments is not told here.
    """
    if (_value(words, "--stage") or "grpo") not in ("grpo", "sft"):
        return True
    start = next((word.removeprefix("start=") for word in reversed(words) if word.startswith("start=")), None)
    if start is None and (config := _value(words, "--config")) is not None:
        try:
            start = tomllib.loads(Path(config).read_text(encoding="utf-8")).get("start")
        except (OSError, ValueError):
            return False
    if not isinstance(start, str):
        return False
    weights = (shipped_checkpoint(start) or Path(start)) / "model.safetensors"
    return weights.is_file() and weights.stat().st_size <= _TINY_BYTES


def _value(words: Sequence[str], option: str) -> str | None:
    """What is given for an option, as "--option VALUE" or "--option=VALUE"."""
    for place, word in enumerate(words):
        if word == option and place + 1 < len(words):
            return words[place + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def resolve_device() -> torch.device:
    """Where supervised training runs: on a GPU where there is one (CUDA_VISIBLE_DEVICES= hides it), else on the CPU."""
    import torch  # noqa: PLC0415 - the command line imports this module before torch may start

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def resolve_dtype(precision: Precision, device: str = "cpu") -> torch.dtype:
    """The dtype of the matrix products. "auto" is bf16 on a GPU and on a processor that multiplies bf16 natively, else
    fp32.

    "auto" reads the processor's capabilities and measures no time, so a run that is resumed on the same machine gets
    the same dtype.
    """
    import torch  # noqa: PLC0415 - see above

    if precision == "auto":
        native = device != "cpu" or torch.cpu.get_capabilities().get("avx512_bf16", False)
        precision = "bf16" if native else "fp32"
    return torch.bfloat16 if precision == "bf16" else torch.float32


def generator(name: str) -> torch.Generator:
    """A CPU generator whose random numbers depend only on `name`."""
    import torch  # noqa: PLC0415 - see above

    digest = hashlib.sha256(name.encode()).digest()
    # torch takes signed 64-bit seeds, so the top bit is left out.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
