"""A checkpoint: a Hugging Face folder with a podium.json, which says how to prompt the policy and for which pools.

`Checkpoint.read` describes a folder, or says in one sentence what the folder lacks. Nothing here runs a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from podium.conductor.prompt import PromptSettings
from podium.config import Settings, build, read_file
from podium.errors import CheckpointError
from podium.plugins import shipped_checkpoint, shipped_checkpoints
from podium.workers.base import costly_workers
from podium.workers.vote import VOTE

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from podium.workers.pool import Pool


class TrainingScope(Settings):
    """The pools that a policy was trained to conduct. Podium refuses a pool that `simulated`, `ratings` or `workers`
    excludes. It checks no questions, and only shows `questions`."""

    questions: str = "any questions"
    """The questions that the policy was trained on, in words, for messages."""
    simulated: bool = False
    """Whether the policy conducts only scripted and recorded workers."""
    ratings: bool = False
    """Whether every worker must have a rating, and the pool must have a vote."""
    workers: tuple[str, ...] = ()
    """The names of the workers, in order, for a policy that knows workers only by number. If empty, any workers fit."""

    def misfit(self, pool: Pool) -> str | None:
        """Why such a policy must not conduct `pool`, in one sentence. None if it may."""
        if self.simulated and (real := costly_workers(pool)):
            return (
                f"it was trained on {self.questions} over scripted or recorded workers, and "
                f"{real[0].profile.name!r} of this pool is a real one."
            )
        if self.workers and pool.names != self.workers:
            return f"it knows workers only by number, in this order: {', '.join(self.workers)}."
        return _missing_ratings(pool) if self.ratings else None


class PlanLimits(Settings):
    """How plans are sampled, and their limits. A trained policy always samples as it did in training."""

    max_plan_tokens: int | None = Field(default=None, ge=1)
    """The most tokens of a completion. If it is None, the default of the program that runs the policy holds."""
    temperature: float = Field(default=0.0, ge=0)
    """The sampling temperature. 0 always takes the most likely token."""
    rounds: int = Field(default=1, ge=1)
    """The most plans for one question."""
    max_steps: int = Field(default=5, ge=1)
    """The most steps of one plan."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of the chat template, such as enable_thinking."""


class PodiumFile(Settings):
    """The content of podium.json, which lies beside the Hugging Face files."""

    prompt: PromptSettings = PromptSettings()
    """How the policy was prompted in training."""
    conducts: TrainingScope = TrainingScope()
    """The pools that the policy was trained to conduct. Default: any pool fits."""
    plan: PlanLimits | None = None
    """How plans are sampled, and their limits. If it is None, the caller's defaults hold."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The contents of a checkpoint folder."""

    path: Path
    config: Mapping[str, Any]
    prompt: PromptSettings
    scope: TrainingScope = field(default_factory=TrainingScope)
    plan: PlanLimits | None = None

    @classmethod
    def read(cls, source: str | Path) -> Self:
        """Describe the folder at a path, or the shipped checkpoint of that name.

        Raises:
            CheckpointError: there is no such folder, or it lacks a file that every checkpoint has.
            ConfigError: the folder's podium.json has an unknown key or value."""
        path = checkpoint_folder(source)
        if not path.is_dir():
            known = ", ".join(shipped_checkpoints()) or "none is installed"
            raise CheckpointError(
                f"{path} is not a folder; give the folder of a checkpoint, or the name of one that ships: {known}."
            )
        pipe = next((file for file in path.iterdir() if not (file.is_file() or file.is_dir())), None)
        if pipe is not None:  # transformers would wait for ever for a pipe, or read a device for ever.
            raise CheckpointError(f"{pipe} is a pipe, a device or a broken link, and no file; remove it.")
        missing = _missing_files(path)
        if missing:
            raise CheckpointError(
                f"{path} is not a checkpoint: it has no {' and no '.join(missing)}. Give a folder as "
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
    def uses_chat_template(self) -> bool:
        """Whether messages go through a chat template. If not, the model reads their plain text."""
        if self.prompt.style == "brief":
            return False
        settings = self.path / "tokenizer_config.json"
        return (self.path / "chat_template.jinja").is_file() or (
            settings.is_file() and bool(_json_object(settings).get("chat_template"))
        )

    @property
    def _text_config(self) -> Mapping[str, Any]:
        """The configuration, with what a model that also sees images says of its language model in a table."""
        return {**(self.config.get("text_config") or {}), **self.config}

    @property
    def bos_token_id(self) -> int | None:
        """The token that begins a text."""
        begin = self._text_config.get("bos_token_id")
        return begin if isinstance(begin, int) else None

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """The tokens that end a completion, from generation_config.json or else from config.json."""
        extra = self.path / "generation_config.json"
        generation = _json_object(extra) if extra.is_file() else {}
        ends = generation.get("eos_token_id", self._text_config.get("eos_token_id"))
        return frozenset([ends] if isinstance(ends, int) else ends or ())

    @property
    def context(self) -> int:
        """The most tokens that prompt and completion have together."""
        config = self._text_config
        return int(config.get("max_position_embeddings") or config.get("n_positions") or 2048)

    def tokenizer(self) -> Tokenizer:
        """The tokenizer of tokenizer.json, a new one at each call.

        Raises:
            CheckpointError: the file cannot be read.
        """
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ImportError:
            raise CheckpointError(
                f"{self.path} is a model to be run here, which needs the package tokenizers: "
                "pip install 'podium-conductor[train]'."
            ) from None
        path = self.path / "tokenizer.json"
        content = _text(path)
        try:
            return Tokenizer.from_str(content)
        except Exception as error:  # the library raises nothing narrower
            raise CheckpointError(
                f"{path} is not a tokenizer; save the checkpoint's tokenizer again."
            ) from error

    def parameters(self) -> int | None:
        """The number of parameters in the header of model.safetensors. None if the weights are in other files.

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


def is_llama(config: Mapping[str, Any]) -> bool:
    """Whether a configuration has the plain Llama form with full attention, the only form that Podium's own code
    runs."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return (
        config.get("model_type") in ("llama", "qwen2")
        and config.get("hidden_act", "silu") == "silu"
        and rope.get("rope_type", rope.get("type", "default")) == "default"
        and not config.get("use_sliding_window", False)
    )


def read_podium_json(path: Path) -> PodiumFile:
    """Read a podium.json.

    Raises:
        CheckpointError: it is no JSON object.
        ConfigError: it has a key or a value that is not known.
    """
    return build(_json_object(path), PodiumFile, source=str(path))


def checkpoint_folder(source: str | Path) -> Path:
    """The folder of a checkpoint that comes with Podium or an installed package. For any other source, its path."""
    return (shipped_checkpoint(source) if isinstance(source, str) else None) or Path(source)


def find_podium_file(source: str) -> PodiumFile:
    """Read the podium.json of a policy that a server runs, since the server does not say how its model was prompted.

    Args:
        source: the checkpoint's folder, its podium.json, a shipped checkpoint's name, or OWNER/NAME on the Hugging Face
            hub.

    Raises:
        CheckpointError: there is no such file, or it cannot be fetched from the hub.
        ConfigError: it has a key or a value that is not known.
    """
    path = checkpoint_folder(source)
    if not path.exists():
        if not is_hub_name(source) or source.endswith(".json"):
            raise CheckpointError(
                f"{source} does not exist; give a checkpoint's folder, its podium.json, or OWNER/NAME on the hub."
            )
        path = fetch_from_hub(source, allow_patterns=["podium.json"])
    if path.is_dir() and not (path := path / "podium.json").is_file():
        raise CheckpointError(
            f"{source} has no podium.json; give the folder that training wrote, or leave it out."
        )
    return read_podium_json(path)


def is_hub_name(name: str) -> bool:
    """Whether a name that is no path here may be OWNER/NAME on the Hugging Face hub."""
    return name.count("/") == 1 and not name.startswith((".", "/", "~"))


def fetch_from_hub(name: str, revision: str | None = None, **which: Any) -> Path:
    """The folder of a model on the Hugging Face hub, fetched or taken from the hub's cache.

    Args:
        which: the arguments of `snapshot_download` that choose files.

    Raises:
        CheckpointError: it cannot be fetched.
    """
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - takes a while to load
        from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415
    except ImportError:
        raise CheckpointError(
            f"{name} is no folder here, and huggingface_hub is not installed: pip install huggingface_hub."
        ) from None
    try:
        return Path(snapshot_download(name, revision=revision, **which))
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise CheckpointError(
            f"{name} is no folder here, and cannot be fetched from the hub: {reason} Check the name, or fetch "
            f"it on a machine that reaches the hub, with: hf download {name}"
        ) from None


def _missing_ratings(pool: Pool) -> str | None:
    """The ratings or the vote that the pool lacks for a policy that reads ratings, in words. None if it lacks
    nothing."""
    rated = pool.ratings.workers if pool.ratings is not None else {}
    others = [name for name in pool.names if name != VOTE]
    unrated = [name for name in others if name not in rated]
    if len(unrated) == len(others):
        return "it reads the ratings of workers, and this pool has none; podium rate makes them."
    if VOTE not in pool.names:
        return (
            f"its plans end with a worker named {VOTE!r}; add a [[worker]] with "
            f'name = "{VOTE}" and kind = "vote" to the pool, or give your voting worker that name.'
        )
    if unrated:
        return (
            f"it reads the ratings of workers, and this pool has none of {', '.join(unrated)}; podium rate makes those "
            "of recorded workers and calculators; leave the others out."
        )
    return None


def _missing_files(path: Path) -> list[str]:
    tokenizers = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
    presence = {
        "config.json": (path / "config.json").is_file(),
        "weights (model.safetensors)": any(
            any(path.glob(form)) for form in ("*.safetensors", "pytorch_model*.bin")
        ),
        "tokenizer (tokenizer.json)": any((path / name).is_file() for name in tokenizers),
    }
    return [what for what, is_there in presence.items() if not is_there]


def _text(path: Path) -> str:
    try:
        return read_file(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CheckpointError(f"{path} cannot be read ({reason}); save the checkpoint again.") from None


def _json_object(path: Path) -> dict[str, Any]:
    text = _text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not JSON; save the checkpoint again.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object; save the checkpoint again.")
    return value
