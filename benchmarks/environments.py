"""Environments of their own for what Podium is compared with. Each is made when it is first used."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path


def environment(folder: Path, *packages: str, anew: bool = False) -> Path | None:
    """The programs of the environment in `folder`, with these packages. Returns None if it cannot be had, and has said
    why.

    Args:
        anew: install the packages also into an environment that is there. pip then replaces those that it installed
            from a folder, which may have changed.
    """
    programs = folder / "bin"
    made = (folder / "complete").exists()
    if anew or not made:
        print(f"Installing {', '.join(packages)} into {folder} ...", flush=True)
        if not made:
            venv.create(folder, with_pip=True, clear=True)
        install = ["-m", "pip", "--disable-pip-version-check", "--quiet", "install", *packages]
        installed = subprocess.run(
            [programs / "python", *install], capture_output=True, text=True, check=False
        )
        if installed.returncode:
            why = installed.stderr.strip().splitlines()[-1]
            print(f"{', '.join(packages)} cannot be installed here: {why}")
            return None
        (folder / "complete").touch()
    return programs
