"""The interpreter that waits in a sandbox: how it is started, its environment, and what it must be able to read."""

from __future__ import annotations

import os
import platform
import re
import site
import sys
from collections.abc import Mapping
from pathlib import Path

from podium.errors import ConfigError

PACKAGE = Path("podium", "sandbox", "inside")
"""Where the code that runs inside lies below a folder of packages."""
ROOT = Path(__file__).resolve().parents[2]
"""That folder, outside."""
_CODE = "from podium.sandbox.inside.supervisor import main; main()"


def command(others: int, user: int | None = None) -> list[str]:
    """Program and arguments.

    Args:
        others: processes that count against the limit of processes, as `processes_of_user` has it.
        user: whom programs run as; None: as the interpreter.
    """
    # -S: the `site` module takes a third of an interpreter's start, and gives no more than these folders.
    return [
        sys.executable,
        "-S",
        "-s",
        "-P",
        "-c",
        _CODE,
        str(others),
        str(user or ""),
        *site.getsitepackages(),
    ]


def environment(root: Path, temporary: Path) -> Mapping[str, str]:
    """All of its environment: nothing is taken from ours.

    Args:
        root: the folder that holds `PACKAGE`, as the interpreter sees it.
        temporary: the one folder to write to.
    """
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(temporary),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # the same program gets the same verdict
        **one_thread,
    }


def folders() -> list[Path]:
    """What it reads: its own installation and its virtual environment, by all names that they go by.

    Raises:
        ConfigError: the user's home lies in one of them.
    """
    prefixes = [Path(prefix) for prefix in (sys.base_prefix, sys.prefix)]
    home = Path(os.path.expanduser("~"))
    for prefix in prefixes:
        if home.is_relative_to(prefix):
            raise ConfigError(
                f"Your home lies in {prefix}, where Python is; run Podium from a virtual environment."
            )
    named = dict.fromkeys([*prefixes, *(prefix.resolve() for prefix in prefixes)])
    return [prefix for prefix in named if not prefix.is_relative_to("/usr")]


def processes_of_user() -> int:
    """Processes and threads of this user, which the kernel counts together with a sandbox's own.

    Since Linux 5.14 those of a user namespace are counted apart.
    """
    me = os.getuid()
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == me:
                count += len(os.listdir(process / "task"))
        except OSError:
            continue
    return count


def counts_apart() -> bool:
    """Whether the kernel counts the processes of a user namespace apart."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)
