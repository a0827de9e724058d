"""A grader and a task set from outside: one class each, and one line in the metadata of the package that has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from installed_package import install_package
from loaded_programs import loaded_python

MODULE = """
from typing import ClassVar, Literal

from podium.plugin_api.tasks import Grade, PureGrader, Sample, TaskSetSpec, extract
from podium.files.tables import Row
from podium.tasks.graders.text_graders import Exact
from podium.tasks.sets.base import read_tasks


class Prefix(PureGrader):
    kind: Literal["prefix"] = "prefix"
    length: int = 3

    def judge(self, response, gold):
        found = extract(response, "final")
        return Grade(float(found is not None and found[: self.length] == gold[: self.length]), found)


class Capitals(TaskSetSpec):
    source: ClassVar[str] = "an atlas"
    licence: ClassVar[str] = "MIT"
    set: Literal["capitals"] = "capitals"

    @property
    def source_splits(self):
        return ("test",)

    def read_splits(self, splits):
        rows = [Row("atlas, line 1", {"country": "Peru", "capital": "Lima"})]
        return {"test": read_tasks(rows, self.record_to_sample, Exact(), name=self.set)}

    def record_to_sample(self, values):
        return Sample(f"What is the capital of {values['country']}?", values["capital"], values["country"])
"""
PROGRAM = """
import asyncio
from podium.tasks import open_tasks
(task,) = open_tasks("capitals", "test")
(own,) = open_tasks("mine.toml", "test")
grades = asyncio.run(task.grade("Answer: Lima")), asyncio.run(own.grade("Answer: Limon"))
print(task.id, *(grade.score for grade in grades))
"""
TASK_FILE = """
[[part]]
set = "own"
files = { test = "rows.jsonl" }
grader = { kind = "prefix", length = 3 }
"""
ENTRY_POINTS = """\
[podium.graders]
prefix = acme:Prefix
[podium.task_sets]
capitals = acme:Capitals
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package, a task file and its rows."""
    install_package(monkeypatch, tmp_path, "acme", ENTRY_POINTS, MODULE)
    (tmp_path / "mine.toml").write_text(TASK_FILE)
    (tmp_path / "rows.jsonl").write_text('{"question": "A port of Peru?", "answer": "Lima"}\n')
    return tmp_path


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [loaded_python(), *args],
        cwd=folder,  # Where Python finds the package.
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_grader_and_a_task_set_of_another_package_are_used_by_name(folder: Path) -> None:
    done = run(folder, "-c", PROGRAM)
    assert done.stdout.split() == ["capitals/Peru", "1.0", "1.0"], done.stderr


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("acme:Prefix", "acme:Capitals", 'is no GraderSettings with the default kind = "prefix"'),
        ("acme:Capitals", "acme:Prefix", 'is no TaskSetSpec with the default set = "capitals"'),
        ('"capitals"', '"towns"', 'is no TaskSetSpec with the default set = "capitals"'),
    ],
)
def test_broken_plugin_is_reported_in_one_sentence(folder: Path, old: str, new: str, problem: str) -> None:
    for file in (folder / "acme.py", folder / "acme-1.0.dist-info" / "entry_points.txt"):
        file.write_text(file.read_text().replace(old, new))
    name = "mine.toml" if "Prefix" in old else "capitals"
    done = run(folder, "-m", "podium", "tasks", "show", name, "--split", "test")
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_broken_package_matters_to_nobody_who_does_not_name_it(folder: Path) -> None:
    (folder / "acme.py").write_text("raise RuntimeError('broken')")
    (folder / "own.csv").write_text("question,answer,split\nOne and one?,2,test\n")
    assert run(folder, "-c", "import podium; podium.Team").returncode == 0
    assert run(folder, "-m", "podium", "tasks", "show", "own.csv", "--split", "test").returncode == 0
    listed = run(folder, "-m", "podium", "tasks", "list", "--json")
    assert (listed.returncode, "capitals" in listed.stdout) == (0, False)
    assert "'capitals' is acme:Capitals, which cannot be loaded (broken)" in listed.stderr


def test_wrong_key_of_a_grader_of_another_package_is_refused(folder: Path) -> None:
    (folder / "mine.toml").write_text(TASK_FILE.replace("length", "lenght"))
    done = run(folder, "-m", "podium", "tasks", "show", "mine.toml", "--split", "test")
    assert done.returncode == 2
    assert "mine.toml, line 5: unknown key 'part.0.grader.lenght'; did you mean 'length'?" in done.stderr
