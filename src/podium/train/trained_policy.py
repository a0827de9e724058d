"""Writes the folder of the trained policy: the weights that an engine saved, the start's tokenizer, and podium.json."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.conductor.checkpoint import Checkpoint, PlanLimits, PodiumFile, TrainingScope
from podium.errors import StoreError
from podium.files.atomic import atomic_folder, replace_file
from podium.rollout.run_folder import RunFolder
from podium.train.settings import TrainSettings
from podium.workers.base import has_costly_workers
from podium.workers.pool import Pool

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model",
    "vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json",
)  # fmt: skip
"""The files of a checkpoint that training copies unchanged, each if the checkpoint has it."""
POLICY_ROWS = "policy_rows"
"""The file in a run's folder that holds the number of rows that the run had when its policy was written."""


def name_without_folder(name: str) -> str:
    """The name of a file or folder without where it lies, which a published policy must not tell. Other names stay."""
    path = Path(name)
    return path.resolve().name if path.is_absolute() or name.startswith((".", "~")) or path.exists() else name


def podium_file(settings: TrainSettings, start: Checkpoint, pool: Pool) -> PodiumFile:
    """The podium.json of the trained policy: its prompt, the limits of its plans, and the pools that it may conduct."""
    offered = pool.subset(settings.pool_sampling.offered(pool))
    ratings = start.scope.ratings  # A policy that reads ratings may conduct real workers too.
    knows_numbers = settings.prompt.pool == "anonymous" and not settings.pool_sampling.random
    return PodiumFile(
        prompt=settings.prompt,
        conducts=TrainingScope(
            questions=f"the questions of {name_without_folder(settings.tasks)}",
            simulated=not ratings and not has_costly_workers(offered),
            ratings=ratings,
            workers=offered.names if knows_numbers else (),
        ),
        plan=PlanLimits(
            max_plan_tokens=settings.grpo.max_tokens,
            rounds=settings.rounds,
            max_steps=settings.max_steps,
            chat_template_kwargs=settings.chat_template_kwargs,
        ),
    )


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """The block saves weights at `path`.

    Raises:
        StoreError: the disk is full or not writable.
    """
    from safetensors import SafetensorError  # noqa: PLC0415 - transformers brings it

    try:
        yield
    except OSError as error:
        raise StoreError.of_file(path, error) from None
    except SafetensorError as error:  # A full disk raises this error too.
        raise StoreError(
            f"{path} cannot be written ({error}); fix that, and run the same command again."
        ) from None


def write_policy(run: Path, settings: TrainSettings, base: Checkpoint, pool: Pool) -> None:
    """Write `policy` in the run's folder, from the model or the adapter that the trainer saved in `trained`.

    An adapter is merged into `base`. The weights have the dtype of `base`, unless rounding to it would lose what was
    learned. If the process is killed, no partial policy is left.

    Raises:
        CheckpointError: the merged model would not write the same text as the trained model.
        StoreError: the disk is full or not writable.
    """
    saved = run / "trained"
    with saving(run / "policy"), atomic_folder(run / "policy") as policy:
        from podium.train.trl.adapters import merge_adapter, round_weights  # noqa: PLC0415 - loads torch

        if (saved / "adapter_config.json").is_file():
            merge_adapter(base, saved, policy)
        else:
            # copytree's error has no number, so that it could not be told in a sentence.
            for file in sorted(path for path in saved.rglob("*") if path.is_file()):
                copy = policy / file.relative_to(saved)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
            (policy / "training_args.bin").unlink(missing_ok=True)
            round_weights(base, saved, policy)
        for name in TOKENIZER_FILES:  # Unchanged, since transformers may write other added tokens.
            (policy / name).unlink(missing_ok=True)
            if (base.path / name).is_file():
                shutil.copyfile(base.path / name, policy / name)
        about = podium_file(settings, base, pool)
        text = about.model_dump_json(indent=2, exclude_none=True)
        (policy / "podium.json").write_text(text + "\n", encoding="utf-8")
    rows = RunFolder(run).rows().read()
    replace_file(run / POLICY_ROWS, f"{len(rows)}\n".encode())
