"""Files and folders that are whole after a kill, and the lock of a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loaded_programs import loaded_python
from podium.errors import UsageError
from podium.files.atomic import atomic_folder, lock_folder, replace_file

FULL = """
import resource, sys
from pathlib import Path
from podium.errors import StoreError
from podium.files.atomic import replace_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_file(Path("kept.json"), b"9" * 2000)
except StoreError as error:
    print(error)
"""


def test_on_a_full_disk_the_old_file_stays_and_nothing_half_written(tmp_path: Path) -> None:
    replace_file(tmp_path / "kept.json", b"before")
    said = subprocess.run(
        [loaded_python(), "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("kept.json cannot be written (")
    assert said.stdout.endswith("); fix that, and run the same command again.\n")
    assert [file.name for file in tmp_path.iterdir()] == ["kept.json"]
    assert (tmp_path / "kept.json").read_bytes() == b"before"


def test_a_folder_takes_the_place_of_another_only_when_it_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    for version in ("one", "two"):
        with atomic_folder(folder) as part:
            part.mkdir()
            (part / version).touch()
        assert [file.name for file in folder.iterdir()] == [version]
    with pytest.raises(FileNotFoundError), atomic_folder(folder) as part:
        (part / "no folder yet").touch()
    assert [file.name for file in folder.iterdir()] == ["two"]
    with atomic_folder(folder) as part:  # What the failure left is gone.
        part.mkdir()
    assert (list(folder.iterdir()), list(tmp_path.iterdir())) == ([], [folder])


def test_one_process_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(UsageError, match="Another podium"), lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass
