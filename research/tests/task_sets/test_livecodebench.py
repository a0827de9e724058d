"""Releases, days and packed tests of LiveCodeBench."""

from __future__ import annotations

import json
import os
import pickle
import zlib
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from code_cases import fenced
from contest_cases import ADDS, ADDS_BOTH, contest_row, function_row, packed
from hub_files import TEXT, Table, lay
from podium.config import build
from podium.errors import ConfigError, GraderError
from podium.tasks.task_file import disjoint_splits
from podium_research.task_sets.hub import DATA_VARIABLE
from podium_research.task_sets.livecodebench import LiveCodeBench, PackedCode, unpack_tests

TESTS = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six releases, of a question each but for the first, which has thirty."""
    columns = dict.fromkeys(contest_row("any"), TEXT)
    days = ("2023-05-13", "2024-04-01", "2024-06-01", "2024-08-01", "2024-12-01", "2025-02-01")
    tables = {f"test{n}.jsonl": [contest_row(f"q{n}", day)] for n, day in enumerate(days, 1)}
    tables["test.jsonl"] = [contest_row(f"q1{n}", f"2023-05-{n:02}") for n in range(1, 31)]
    del tables["test1.jsonl"]
    folder = "livecodebench/code_generation_lite"
    lay(tmp_path, {f"{folder}/{name}": Table(columns, rows) for name, rows in tables.items()})
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))


def ids(spec: LiveCodeBench, split: str = "test") -> list[str]:
    ((loaded,),) = disjoint_splits([spec], (split,)).values()
    return [task.id.removeprefix("livecodebench/") for task in loaded.tasks]


@pytest.mark.parametrize(
    ("release", "found"),
    [
        ("v6", ["q6"]),
        ("v2", ["q2"]),
        ("v2_v4", ["q2", "q3", "q4"]),
        ("v4_v2", ["q2", "q3", "q4"]),
        ("release_v3", [*(f"q1{n}" for n in range(1, 31)), "q2", "q3"]),
    ],
)
@pytest.mark.usefixtures("releases")
def test_livecodebench_accepts_the_release_names_of_its_authors(release: str, found: list[str]) -> None:
    assert ids(LiveCodeBench(release=release)) == found


@pytest.mark.parametrize("release", ["v7", "v0", "6", "release", "release_latest", "v1_", "v1_v2_v3", ""])
def test_livecodebench_refuses_an_unknown_release(release: str) -> None:
    with pytest.raises(ConfigError, match="release"):
        build({"release": release}, LiveCodeBench)


@pytest.mark.parametrize(
    ("window", "found"),
    [
        ({"since": "2024-06-01", "until": "2024-08-01"}, ["q3", "q4"]),
        ({"since": "2024-06-02", "until": "2024-07-31"}, []),
        ({"until": "2024-04-01"}, ["q2"]),
        ({"since": "2025-01-01"}, ["q6"]),
    ],
)
@pytest.mark.usefixtures("releases")
def test_a_window_holds_its_first_and_its_last_day(window: Mapping[str, str], found: list[str]) -> None:
    assert ids(build({"release": "v2_v6", **window}, LiveCodeBench)) == found


@pytest.mark.usefixtures("releases")
def test_livecodebench_training_questions_are_older_than_test_questions() -> None:
    spec = LiveCodeBench(training="release_v6")
    assert len([*ids(spec, "train"), *ids(spec, "validation")]) == 34
    assert "q6" not in {*ids(spec, "train"), *ids(spec, "validation")}
    older = build({"training": "release_v6", "since": "2023-05-11"}, LiveCodeBench)
    assert {*ids(older, "train"), *ids(older, "validation")} == {f"q1{n}" for n in range(1, 11)}


def test_a_row_without_a_day_is_broken_and_not_out_of_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = contest_row("q", contest_date="soon")
    table = Table(dict.fromkeys(row, TEXT), [row])
    lay(tmp_path, {"livecodebench/code_generation_lite/test6.jsonl": table})
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    spec = build({"since": "2024-01-01"}, LiveCodeBench)
    assert sum(spec.read_splits(("test",))["test"].skipped.values()) == 1


def gold(private: str, *, public: object = None, function: object = None) -> str:
    return json.dumps({"public": json.dumps(public or []), "private": private, "function": function})


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_private_tests_are_read_whatever_the_pickles_protocol(protocol: int) -> None:
    wanted = {"form": "programs", "inputs": ["1 2\n"], "outputs": ["3\n"]}
    assert json.loads(unpack_tests(gold(packed(TESTS, protocol)))) == wanted
    assert json.loads(unpack_tests(gold(json.dumps(TESTS)))) == wanted


def test_public_tests_precede_private_ones_and_arguments_read_by_line() -> None:
    row = function_row("3702")
    said = {name: row[f"{name}_test_cases"] for name in ("public", "private")}
    assert json.loads(unpack_tests(json.dumps({**said, "function": "bothSums"}))) == {
        "form": "calls",
        "function": "bothSums",
        "inputs": [[1, [2]], [-4, [4, 5]]],
        "outputs": [[3, 1], [5, -4]],
    }


class Attack:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def zipped(value: bytes) -> str:
    return b64encode(zlib.compress(value)).decode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "left behind"
    pickle.loads(pickle.dumps(Attack(tmp_path / "it works"), protocol))
    assert (tmp_path / "it works").exists()
    for held in (Attack(path), [Attack(path)], ("[]", Attack(path))):
        with pytest.raises(ValueError, match="a pickle of one text has no"):
            unpack_tests(gold(zipped(pickle.dumps(held, protocol))))
    assert not path.exists()


@pytest.mark.parametrize(
    "private",
    [
        "no base 64!",
        b64encode(b"not zipped").decode(),
        packed(TESTS)[:40],
        zipped(b"no pickle"),
        zipped(pickle.dumps(["[]"])),
        zipped(pickle.dumps(17)),
        zipped(pickle.dumps("no JSON")),
        zipped(pickle.dumps('{"input": 1}')),
        zipped(pickle.dumps("[" * 100_000)),
        zipped(pickle.dumps("[]")[:-1]),
        '[{"input": "1"}]',
        "[3]",
    ],
)
def test_tests_that_cannot_be_read_are_a_broken_row(private: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack_tests(gold(private))


def test_compressed_tests_above_the_size_limit_are_refused() -> None:
    unpack_tests(gold(packed(TESTS * 1000)), most=2**20)
    with pytest.raises(ValueError, match="too large"):
        unpack_tests(gold(packed(TESTS * 100_000)), most=2**20)


async def test_all_tests_must_pass_public_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [contest_row("a"), function_row("b")]
    table = Table(dict.fromkeys(rows[0], TEXT), rows)
    lay(tmp_path, {"livecodebench/code_generation_lite/test6.jsonl": table})
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    weak = LiveCodeBench().grading.model_copy(update={"allow_weak_sandbox": True})
    program, function = LiveCodeBench(grading=weak).read_splits(("test",))["test"].tasks
    for task, code, score in (
        (program, ADDS, 1.0),
        (program, "import sys\nprint(sum(map(int, sys.stdin.read().split())), end=' \\n\\n')", 1.0),
        (program, "print(3)", 0.0),
        (program, "print(-2)", 0.0),
        (program, "def main():\n    a, b = map(int, input().split())\n    print(a + b)", 0.0),
        (function, ADDS_BOTH, 1.0),
        (function, ADDS_BOTH.replace("[a + sum(more), a]", "(a + sum(more), a)"), 1.0),
        (function, ADDS_BOTH.replace("a + sum(more)", "3"), 0.0),
        (function, ADDS_BOTH.replace("bothSums", "sums"), 0.0),
    ):
        assert (await task.grade(fenced(code))).score == score, code


@pytest.mark.parametrize("gold", ["", "{}", "[]", "17", '{"public": "[]", "private": "", "function": null}'])
async def test_tests_that_cannot_be_read_are_the_graders_fault(gold: str) -> None:
    with pytest.raises(GraderError, match="tests cannot be read"):
        await PackedCode()(fenced(ADDS), gold)
