"""A checkpoint: an ordinary Hugging Face folder, and in podium.json how its policy is prompted and what it can conduct.

This file describes a folder, says in one sentence what it lacks, and reads its tokenizer and weights. It runs no model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from podium.conductor.prompt import PromptSettings, rating_words
from podium.config import Settings, build
from podium.errors import CheckpointError
from podium.workers.pool import real_workers
from podium.workers.vote import VOTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from podium.workers.pool import Pool

SHIPPED = ("warmstart", "conductor")
"""Names of the checkpoints in the package: before and after training."""


class Conducts(Settings):
    """What a policy was trained to conduct. It leads no other pool."""

    questions: str = "any questions"
    """Those that it was trained on, in words, for messages."""
    simulated: bool = False
    """Whether it leads simulated, scripted and recorded workers alone."""
    ratings: bool = False
    """Whether every worker needs a rating, and the pool a vote."""
    workers: tuple[str, ...] = ()
    """Of an anonymous pool: the names of the workers, in order. None: any."""

    def misfit(self, pool: Pool) -> str | None:
        """Why a policy that conducts this must not lead `pool`, in one sentence; None: it fits."""
        if self.simulated and (real := real_workers(pool)):
            return (
                f"it was trained on {self.questions} over simulated workers, and {real[0].profile.name!r} of this "
                "pool is asked for real."
            )
        if self.workers and pool.names != self.workers:
            return f"it knows workers by number alone, in this order: {', '.join(self.workers)}."
        return _unrated(pool) if self.ratings else None


class PlanSettings(Settings):
    """How its plans are drawn and bounded, as it was trained; whoever asks the policy obeys it."""

    max_plan_tokens: int | None = Field(default=None, ge=1)
    """Tokens of a completion at most; None: the default of whatever runs the policy."""
    temperature: float = Field(default=0.0, ge=0)
    """0: always the most likely token."""
    rounds: int = Field(default=1, ge=1)
    """Most plans of a question."""
    max_steps: int = Field(default=5, ge=1)
    """Steps of a plan at most."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of its chat template, such as enable_thinking."""


class PodiumFile(Settings):
    """podium.json, beside the Hugging Face files."""

    prompt: PromptSettings = PromptSettings()
    """How the policy was prompted in training."""
    conducts: Conducts | None = None
    """What it was trained to conduct. None: worked out from the prompt style, for files older than this key."""
    plan: PlanSettings | None = None
    """How its plans are drawn and bounded. None: by the defaults of whoever asks."""

    @property
    def what_it_conducts(self) -> Conducts:
        """As `Checkpoint.conducts`, without its files: whether it reads ratings is not known of an older one."""
        if self.conducts is not None:
            return self.conducts
        brief = self.prompt.style == "brief"
        return Conducts(questions="the embedded questions", simulated=True) if brief else Conducts()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a folder says of itself."""

    path: Path
    config: Mapping[str, Any]
    """config.json."""
    prompt: PromptSettings
    stated: Conducts | None = None
    """What podium.json says that it conducts."""
    plan: PlanSettings | None = None
    """What podium.json says of its plans."""

    @classmethod
    def read(cls, source: str | Path) -> Self:
        """Describe the folder at a path, or the shipped checkpoint of that name.

        Raises:
            CheckpointError: no such folder, or what it lacks to be a checkpoint.
            ConfigError: its podium.json has a key or a value that is not known.
        """
        path = shipped(source) if isinstance(source, str) and source in SHIPPED else Path(source)
        if not path.is_dir():
            known = " or ".join(SHIPPED)
            raise CheckpointError(
                f"{path} is not a folder; give the folder of a checkpoint, or the shipped {known}."
            )
        lacking = _lacking(path)
        if lacking:
            raise CheckpointError(
                f"{path} is not a checkpoint: it has no {' and no '.join(lacking)}. Give a folder as "
                "save_pretrained writes it, with the tokenizer beside the model."
            )
        config = _json_object(path / "config.json")
        if not isinstance(config.get("model_type"), str):
            raise CheckpointError(
                f'{path / "config.json"} does not say its "model_type", so nothing can load it.'
            )
        extra = path / "podium.json"
        settings = read_podium_json(extra) if extra.is_file() else PodiumFile()
        return cls(path, config, settings.prompt, settings.conducts, settings.plan)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def chats(self) -> bool:
        """Whether messages go through a chat template; else their plain text is what the model reads."""
        if self.prompt.style == "brief":
            return False
        settings = self.path / "tokenizer_config.json"
        return (self.path / "chat_template.jinja").is_file() or (
            settings.is_file() and bool(_json_object(settings).get("chat_template"))
        )

    @property
    def begin(self) -> int | None:
        """The token that begins a text."""
        begin = self.config.get("bos_token_id")
        return begin if isinstance(begin, int) else None

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a completion: those of generation_config.json, else of config.json."""
        extra = self.path / "generation_config.json"
        generation = _json_object(extra) if extra.is_file() else {}
        ends = generation.get("eos_token_id", self.config.get("eos_token_id"))
        return frozenset([ends] if isinstance(ends, int) else ends or ())

    @property
    def context(self) -> int:
        """Tokens that prompt and completion may have together."""
        return int(self.config.get("max_position_embeddings") or self.config.get("n_positions") or 2048)

    @property
    def reads_ratings(self) -> bool:
        """Whether its words are those of ratings in the brief style: policies that read ratings are given them."""
        if self.prompt.style != "brief" or not (self.path / "tokenizer.json").is_file():
            return False
        tokenizer = self.tokenizer()
        return all(tokenizer.token_to_id(word) is not None for word in rating_words())

    @property
    def conducts(self) -> Conducts:
        """What it can conduct; without a word in podium.json, what its prompt style was trained for."""
        if self.stated is not None:
            return self.stated
        if self.prompt.style == "full":
            return Conducts()
        ratings = self.reads_ratings
        return Conducts(
            questions="the questions of its recordings" if ratings else "the embedded questions",
            simulated=not ratings,
            ratings=ratings,
        )

    def misfit(self, pool: Pool) -> str | None:
        """Why this policy must not lead `pool`, in one sentence; None: it fits."""
        return self.conducts.misfit(pool)

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of tokenizer.json, a new one at each call.

        Raises:
            CheckpointError: the file cannot be read.
        """
        from tokenizers import Tokenizer  # noqa: PLC0415

        path = self.path / "tokenizer.json"
        try:
            return Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing narrower
            raise CheckpointError(
                f"{path} is not a tokenizer; save the checkpoint's tokenizer again."
            ) from error

    def parameters(self) -> int | None:
        """Numbers stored in model.safetensors, by its header; None when the weights lie in other files.

        Raises:
            CheckpointError: the file is not safetensors.
        """
        path = self.path / "model.safetensors"
        if not path.is_file():
            return None
        try:
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(min(length, path.stat().st_size)))
            return sum(int(prod(entry["shape"])) for key, entry in header.items() if key != "__metadata__")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{path} is not a whole safetensors file; copy or save the checkpoint again."
            ) from error


def read_podium_json(path: Path) -> PodiumFile:
    """What a podium.json says.

    Raises:
        CheckpointError: it is no JSON object.
        ConfigError: it has a key or a value that is not known.
    """
    return build(_json_object(path), PodiumFile, source=str(path))


def shipped(name: str) -> Path:
    """The folder of a checkpoint that comes with the package.

    Raises:
        CheckpointError: there is none of that name.
    """
    assets = Path(__file__).parents[1] / "assets"
    path = assets / name
    if name in SHIPPED and path.is_dir():
        return path
    present = [known for known in SHIPPED if (assets / known).is_dir()]
    there = f"there are: {', '.join(present)}" if present else "this installation has none"
    raise CheckpointError(f"No checkpoint {name!r} comes with Podium; {there}. Or give a folder of your own.")


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """All tensors of a safetensors file by name, as float32, without torch.

    Raises:
        CheckpointError: the file is not safetensors, or holds a type other than F32, F16 or BF16.
    """
    from safetensors import SafetensorError, deserialize  # noqa: PLC0415

    try:
        entries = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise CheckpointError(
            f"{path} is not a whole safetensors file; copy or save the checkpoint again."
        ) from error
    return {name: _array(name, entry, path) for name, entry in entries}


def _array(name: str, entry: dict[str, Any], path: Path) -> NDArray[np.float32]:
    import numpy as np  # noqa: PLC0415

    match entry["dtype"]:
        case "BF16":  # NumPy has no bfloat16: its 16 bits are the upper half of a float32.
            halves = np.frombuffer(entry["data"], dtype="<u2")
            flat = (halves.astype(np.uint32) << 16).view(np.float32)
        case "F16":
            flat = np.frombuffer(entry["data"], dtype="<f2").astype(np.float32)
        case "F32":
            flat = np.frombuffer(entry["data"], dtype="<f4").astype(np.float32)
        case other:
            raise CheckpointError(
                f"{path} holds {name} as {other}; save the checkpoint as float32, float16 or bfloat16."
            )
    return flat.reshape(entry["shape"])


def _unrated(pool: Pool) -> str | None:
    """What the pool lacks for a policy that reads ratings, and how to add it."""
    rated = pool.ratings.workers if pool.ratings is not None else {}
    others = [name for name in pool.names if name != VOTE]
    unrated = [name for name in others if name not in rated]
    if len(unrated) == len(others):
        return "it reads ratings of workers, and the pool has none; podium rate makes them."
    if VOTE not in pool.names:
        return (
            f"its plans end with a worker named {VOTE!r}; add a [[worker]] with "
            f'name = "{VOTE}" and kind = "vote" to the pool, or call yours so.'
        )
    if unrated:
        return (
            f"it reads ratings of workers, and the pool has none of {', '.join(unrated)}; podium rate makes those of "
            "recorded workers and calculators, others are better left out."
        )
    return None


def _lacking(path: Path) -> list[str]:
    """What a folder lacks to be a checkpoint, in words."""
    tokenizers = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
    found = {
        "config.json": (path / "config.json").is_file(),
        "weights (model.safetensors)": any(
            any(path.glob(form)) for form in ("*.safetensors", "pytorch_model*.bin")
        ),
        "tokenizer (tokenizer.json)": any((path / name).is_file() for name in tokenizers),
    }
    return [what for what, is_there in found.items() if not is_there]


def _json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is not JSON; save the checkpoint again.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object; save the checkpoint again.")
    return value
