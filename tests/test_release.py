"""What a release is installed with: every dependency has one version, which fits pyproject.toml and names no host."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
EXTRAS = re.findall(r"--extra ([\w-]+)", (ROOT / "Makefile").read_text())
NEEDED = [
    *PROJECT["dependencies"],
    *(line for extra in EXTRAS for line in PROJECT["optional-dependencies"][extra]),
]


def test_each_line_pins_one_version_and_names_no_place() -> None:
    for line in LINES:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.!+-]+( ; [^/@]+)?", line), line
    names = [line.partition("==")[0] for line in LINES]
    assert names == sorted(names)
    assert not {"torch", "triton"} & set(names), "which build fits is the machine's matter"


@pytest.mark.parametrize("needed", sorted(set(NEEDED)))
def test_the_pinned_version_is_one_that_the_package_takes(needed: str) -> None:
    requirement = Requirement(needed)
    if requirement.name == "torch":
        return
    pins = [Requirement(line) for line in LINES if line.partition("==")[0] == requirement.name]
    assert pins, f"make constraints: {needed} is not pinned"
    for pin in pins:
        (version,) = pin.specifier
        assert requirement.specifier.contains(version.version), f"make constraints: {pin} is not {needed}"


def test_the_container_is_built_with_the_pinned_versions() -> None:
    (install,) = re.findall(r"pip install (.+)", (ROOT / "Dockerfile").read_text())
    assert "--constraint constraints.txt" in install
    extras = re.search(r"\[([\w,]+)\]", install)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(EXTRAS)


FOUND = {"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}]}
AUDITS = {
    "a known vulnerability": (json.dumps(FOUND), 1, "a 1: X-1, fixed in 2\n1 of 1"),
    "none": ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "1 of 1 pinned packages"),
    "packages that nobody knows": (
        '{"dependencies": [{"name": "a", "skip_reason": "not found"}]}',
        0,
        "Nothing was",
    ),
    "no network": ("", 0, "Nothing was looked up: pip-audit did not get through"),
}


@pytest.mark.parametrize(("printed", "status", "says"), AUDITS.values(), ids=AUDITS)
def test_audit_fails_only_for_vulnerabilities_and_lists_skipped_packages(
    printed: str, status: int, says: str, tmp_path: Path
) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f"#!{sys.executable}\nprint({printed!r})\nraise SystemExit(1)\n")
    program.chmod(0o755)
    command = [sys.executable, ROOT / "runs" / "audit.py", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout.startswith(says)
