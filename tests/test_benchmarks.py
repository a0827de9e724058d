"""`make bench` writes what its scripts measured, and goes on where one fails."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

RUNNER = Path(__file__).parents[1] / "benchmarks" / "all.py"
ROWS = [
    {"work": "calls", "figure": 30.0, "unit": "/s", "peer": "plain", "peer_figure": 10.0, "goal": "≥ 3 ×"},
    {
        "work": "a call",
        "figure": 3,
        "peer": "plain",
        "peer_figure": 2,
        "goal": "≤ 1.4",
        "higher_is_better": False,
    },
    {"work": "memory", "figure": 900, "unit": "MiB", "goal": 1024.0, "higher_is_better": False},
    {"work": "room", "figure": 900, "unit": "MiB", "peer": "plain", "peer_figure": 90, "goal": "≤ 1,024 MiB"},
    {
        "work": "share",
        "figure": 0.4,
        "unit": "",
        "peer": None,
        "peer_figure": None,
        "goal": "≥ 0.5",
        "ratio": None,
    },
    {"work": "a | b", "figure": 1500.0, "unit": "/s", "goal": ""},
]


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, Any]:
    """The runner, over scripts of this test."""
    (tmp_path / "measures.py").write_text(
        f"import pathlib, sys\npathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text({json.dumps(ROWS)!r})"
    )
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    (tmp_path / "hangs.py").write_text("import time\ntime.sleep(600)")
    found = runpy.run_path(str(RUNNER))
    main, script = found["main"], found["Script"]
    main.__globals__["HERE"] = tmp_path
    main.__globals__["SCRIPTS"] = (
        *(script("fails", 60), script("hangs", 1), script("lacks", 60), script("measures", 60)),
    )
    return found


def test_benchmark_table_shows_reached_goals_and_missing_measurements(
    runner: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "results"
    assert runner["main"]([], out) == 1
    table = (out / "bench.md").read_text()
    assert [line for line in table.splitlines() if line.startswith("| ")][1:] == [
        "| calls | 30 /s | plain: 10 /s | 3 | ratio ≥ 3 × | yes |",
        "| a call | 3 | plain: 2 | 1.5 | ratio ≤ 1.4 | no |",
        "| memory | 900 MiB |  |  | ≤ 1,024 MiB | yes |",
        "| room | 900 MiB | plain: 90 MiB | 10 | ≤ 1,024 MiB | yes |",
        "| share | 0.4 |  |  | ≥ 0.5 | no |",
        "| a / b | 1,500 /s |  |  |  |  |",
    ]
    assert "- `fails.py` ended with status 3." in table
    assert "- `hangs.py` did not end within 1 s." in table
    assert "- `lacks.py` is not in this checkout." in table
    labels = [text.text for text in ElementTree.parse(out / "bench.svg").iter() if text.tag.endswith("text")]
    assert labels[:4] == ["calls, beside plain", "3", "a call, beside plain", "0.67"]


def test_named_scripts_are_run_alone(runner: dict[str, Any], tmp_path: Path) -> None:
    assert runner["main"](["measures"], tmp_path / "results") == 0
