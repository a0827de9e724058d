"""What a package adds whose task set is endless and whose workers are simulated: `sums`, and the kind `calculates`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from installed_package import install_package
from podium.workers.build import WorkerKind
from podium.workers.spec import WorkerSpec
from scripted_team import SKILLS, Calculator

ENTRIES = """
[podium.generated_tasks]
sums = scripted_team:Sums
[podium.workers]
calculates = installed_sums:KIND
"""


class CalculatesSpec(WorkerSpec):
    """A `Calculator` that does each operation right with this chance."""

    kind: Literal["calculates"]
    right: float = 0.5


KIND = WorkerKind(
    CalculatesSpec,
    lambda spec, context: Calculator(
        spec.to_profile(), dict.fromkeys(SKILLS, spec.right), limits=spec.limits
    ),
)


def install_sums(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What an installer leaves: a folder that names the entry points."""
    install_package(monkeypatch, folder, "installed_sums", ENTRIES)
