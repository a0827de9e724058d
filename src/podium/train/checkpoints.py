"""The checkpoints of a training run: policy, optimiser and place in the run, in one folder each.

A checkpoint is an ordinary policy folder with two files more, so `podium ask` can be given one. It is written
beside its name and then renamed: a kill leaves none or a whole one.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from podium.conductor.checkpoint import Checkpoint, PodiumFile
from podium.train.model import PolicyModel
from podium.train.optimizer import Optimizers
from podium.train.weights import companions_of, read_model, write_model

_PLACE = "training.json"
_OPTIMIZER = "optimizer.safetensors"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in its run a checkpoint was taken."""

    iteration: int
    """Iterations done."""
    elapsed_s: float
    """Seconds of training so far, over all resumptions."""


class Checkpoints:
    """The newest checkpoint of a run; older ones are removed."""

    def __init__(self, folder: Path, start: Checkpoint) -> None:
        self.folder = folder
        self.start = start
        """Where configuration and tokenizer come from."""

    def latest(self) -> Path | None:
        """The newest whole checkpoint."""
        return max(self._whole(), default=None, key=lambda path: int(path.name))

    def save(self, model: PolicyModel, optimizers: Optimizers, place: Place) -> Path:
        """Keep this state, and then remove what is older."""
        part = self.folder / ".part"
        shutil.rmtree(part, ignore_errors=True)
        self.write_policy(model, part)
        save_file(_moments(model, optimizers), part / _OPTIMIZER)
        (part / _PLACE).write_text(json.dumps(asdict(place)) + "\n", encoding="utf-8")
        path = self.folder / f"{place.iteration:06d}"
        shutil.rmtree(path, ignore_errors=True)
        part.rename(path)
        for older in self._whole():
            if older != path:
                shutil.rmtree(older)
        return path

    def restore(self, path: Path, model: PolicyModel, optimizers: Optimizers) -> Place:
        """Put a checkpoint's weights and optimiser state back, and say where in the run that was."""
        model.load_state_dict(read_model(Checkpoint.read(path)).state_dict())
        stored = load_file(path / _OPTIMIZER)
        names = {parameter: name for name, parameter in model.named_parameters()}
        states: dict[str, dict[str, torch.Tensor]] = {}
        for key, value in stored.items():
            name, _, moment = key.rpartition("/")
            states.setdefault(name, {})[moment] = value
        for optimizer in optimizers:
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                if names[parameter] in states:
                    optimizer.state[parameter] = states[names[parameter]]
        return Place(**json.loads((path / _PLACE).read_text(encoding="utf-8")))

    def write_policy(self, model: PolicyModel, folder: Path) -> None:
        """Write the policy alone, in fp32."""
        write_model(
            model,
            folder,
            config=self.start.config,
            companions=companions_of(self.start.path),
            dtype="float32",
        )
        if self.start.stated is not None:
            said = PodiumFile(prompt=self.start.prompt, conducts=self.start.stated)
            text = said.model_dump_json(exclude_none=True, indent=2)
            (folder / "podium.json").write_text(text + "\n", encoding="utf-8")

    def _whole(self) -> list[Path]:
        return [path for path in self.folder.glob("[0-9]*") if (path / _PLACE).is_file()]


def _moments(model: PolicyModel, optimizers: Optimizers) -> dict[str, torch.Tensor]:
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for optimizer in optimizers
        for key, value in optimizer.state.get(parameter, {}).items()
    }
