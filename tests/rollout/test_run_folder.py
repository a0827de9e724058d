"""A run's folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from loaded_programs import loaded_python
from podium.errors import RunMismatchError, StoreError
from podium.rollout.data_fingerprint import DataFingerprint
from podium.rollout.run_folder import RunFolder
from small_disk import small_disk

CONFIG = {"train": {"lr": 3e-4, "pool": ["ada", "bram"], "extra": {}}, "minutes": 6, "note": None}


def test_a_new_folder_is_made_with_its_configuration(tmp_path: Path) -> None:
    run = RunFolder.open(tmp_path / "a" / "b", CONFIG)
    assert run.configuration == CONFIG
    assert run.rows().read() == []


def test_the_same_configuration_continues(tmp_path: Path) -> None:
    RunFolder.open(tmp_path, CONFIG).rows().append({"iteration": 0})
    assert RunFolder.open(tmp_path, CONFIG).rows().read() == [{"iteration": 0}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"train": {"lr": 1e-3, "pool": ["ada", "bram"], "extra": {}}},
            "train.lr was 0.0003 and is now 0.001",
        ),
        (
            {"train": {"lr": 3e-4, "pool": ["ada"], "extra": {}}},
            'train.pool was ["ada", "bram"] and is now ["ada"]',
        ),
        ({"note": "x"}, 'note was null and is now "x"'),
        ({"seed": 1}, "seed was not set and is now 1"),
        ({"train": {"lr": 3e-4, "pool": ["ada", "bram"]}}, "train.extra was {} and is now not set"),
    ],
)
def test_another_configuration_is_refused_naming_the_keys(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    RunFolder.open(tmp_path, CONFIG)
    with pytest.raises(RunMismatchError) as refused:
        RunFolder.open(tmp_path, CONFIG | change)
    assert str(refused.value) == (
        f"{tmp_path} is a run of another configuration: {said}. "
        "Choose a new folder, or give the settings with which the run began."
    )
    assert RunFolder(tmp_path).configuration == CONFIG


def test_many_differences_are_cut_short(tmp_path: Path) -> None:
    RunFolder.open(tmp_path, {f"key{k}": 0 for k in range(8)})
    with pytest.raises(RunMismatchError, match="key4 was 0 and is now 1; and 3 more"):
        RunFolder.open(tmp_path, {f"key{k}": 1 for k in range(8)})


def test_free_keys_may_differ_and_are_kept_as_they_are_now(tmp_path: Path) -> None:
    RunFolder.open(tmp_path, CONFIG, changeable=("minutes",))
    assert (
        RunFolder.open(tmp_path, CONFIG | {"minutes": 60}, changeable=("minutes",)).configuration["minutes"]
        == 60
    )


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunMismatchError, match="holds something other than a run"):
        RunFolder.open(tmp_path, CONFIG)
    with pytest.raises(RunMismatchError, match="holds something other than a run"):
        RunFolder.open(tmp_path / "thesis.tex", CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


KILLED = """
import os, sys
from pathlib import Path
from podium.rollout.run_folder import RunFolder
os.fsync = lambda file: os._exit(9)
RunFolder.open(Path("run"), {"seed": 1})
"""


def test_run_folder_without_a_configuration_after_a_kill_is_restarted(tmp_path: Path) -> None:
    killed = subprocess.run([loaded_python(), "-c", KILLED], cwd=tmp_path, check=False)
    folder = tmp_path / "run"
    (left,) = folder.iterdir()
    assert killed.returncode == 9
    assert (left.name.startswith(".config.json."), left.suffix) == (True, ".part")
    assert RunFolder.open(folder, CONFIG).configuration == CONFIG
    assert {file.name for file in folder.iterdir()} == {"config.json", left.name}


OPENED = """
from pathlib import Path
from podium.rollout.run_folder import RunFolder
for _ in range(100):
    RunFolder.open(Path("run"), {"seed": 1})
"""


def test_processes_that_open_a_folder_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    opening = [subprocess.Popen([loaded_python(), "-c", OPENED], cwd=tmp_path) for _ in range(2)]
    assert [process.wait() for process in opening] == [0, 0]
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["config.json"]


def test_folder_of_a_run_that_a_full_disk_stopped_is_restarted(tmp_path: Path) -> None:
    long, data = {"note": "x" * 2000}, DataFingerprint.of([])
    with small_disk(1000), pytest.raises(StoreError, match="cannot be written"):
        RunFolder.open(tmp_path, long, data=data)
    assert RunFolder.open(tmp_path, long, data=data).configuration == long
    assert (tmp_path / "data.json").exists()


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_broken_configuration_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunMismatchError, match="not a run's configuration"):
        RunFolder.open(tmp_path, CONFIG)


def test_a_torn_line_counts_as_never_written(tmp_path: Path) -> None:
    rows = RunFolder.open(tmp_path, CONFIG).rows()
    rows.append({"iteration": 0, "name": "Zoë"})
    with rows.path.open("a") as file:
        file.write('{"iteration": 1, "rew')
    assert rows.read() == [{"iteration": 0, "name": "Zoë"}]
    rows.append({"iteration": 1})
    assert rows.read() == [{"iteration": 0, "name": "Zoë"}, {"iteration": 1}]


def test_rows_beyond_a_checkpoint_are_dropped(tmp_path: Path) -> None:
    rows = RunFolder.open(tmp_path, CONFIG).rows()
    for iteration in range(5):
        rows.append({"iteration": iteration})
    rows.truncate(3)
    assert [row["iteration"] for row in rows.read()] == [0, 1, 2]
    rows.truncate(0)
    assert rows.read() == []


def test_rows_of_different_names_lie_in_different_files(tmp_path: Path) -> None:
    run = RunFolder.open(tmp_path, CONFIG)
    run.rows("answers").append({"task": "a"})
    assert run.rows().read() == []
    assert (tmp_path / "answers.jsonl").exists()


def test_nan_in_a_row_raises_an_error_and_writes_nothing(tmp_path: Path) -> None:
    rows = RunFolder.open(tmp_path, CONFIG).rows()
    with pytest.raises(ValueError, match="JSON compliant"):
        rows.append({"loss": float("nan")})
    assert rows.read() == []
