"""The run's folder of a training, of either stage.

One process at a time trains in it. Its settings, data and chat template may be replaced until it has a row or a
checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from podium.calls import Dispatcher
from podium.errors import RunMismatchError, StoreError
from podium.files import lock_folder, replace_file
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from podium.train.settings import CHANGEABLE_ON_RESUME, TrainSettings
from podium.train.trained_policy import CHAT_TEMPLATE, read_chat_template
from podium.workers.pool import Pool

DispatcherFactory = Callable[[Pool], AbstractContextManager[Dispatcher]]
"""A function that opens the dispatcher of a pool's workers. It is called once, after the run's folder was made."""


def check_training_folder(folder: Path, settings: TrainSettings) -> None:
    """Check, without writing, that a training with these settings may begin or go on in the folder.

    Raises:
        RunMismatchError: see `RunFolder.open`.
    """
    RunFolder.check(folder, settings, changeable=CHANGEABLE_ON_RESUME, begun=has_results(folder))


@contextmanager
def hold_training_folder(
    folder: Path, settings: TrainSettings, *, data: DataFingerprint | None = None
) -> Iterator[RunFolder]:
    """Begin or resume the run in the folder, which no other process can train in until the block ends.

    Raises:
        RunMismatchError: see `RunFolder.open`, or the chat template was edited since the run began.
        UsageError: another process trains in the folder.
    """
    check_training_folder(folder, settings)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError.of_file(folder, error) from None
    with lock_folder(folder):
        begun = has_results(folder)
        run = RunFolder.open(folder, settings, changeable=CHANGEABLE_ON_RESUME, data=data, begun=begun)
        _check_or_store_template(folder, settings, begun=begun)
        yield run


def has_results(folder: Path) -> bool:
    """Whether the run has a row or a checkpoint."""
    return any((folder / "checkpoints").glob("*[0-9]")) or bool(RunFolder(folder).rows().read())


def _check_or_store_template(folder: Path, settings: TrainSettings, *, begun: bool) -> None:
    template = read_chat_template(settings)
    if template is None:
        return
    file = folder / CHAT_TEMPLATE
    if not begun or not file.is_file():
        replace_file(file, template.encode())
    elif file.read_bytes() != template.encode():
        raise RunMismatchError(
            f"{folder} was trained with another text of {settings.chat_template}, which {file} has. Choose a new "
            "folder, or restore the template."
        )
