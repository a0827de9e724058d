"""How long `podium` takes to start, and how much its base install brings, beside litellm's.

python benchmarks/startup.py [--rounds N] [--folder FOLDER] [--installed] [--json FILE]

Podium without extras and litellm are installed into environments of their own, below FOLDER: Podium at each run, as it
is in this checkout, litellm once. The commands alternate, so that a busy machine delays all alike. The figures are
medians of the processor's seconds, which are those of the clock on a machine without other work; both are printed.
litellm reads the list of prices that it brings, and not the newest from the network. The megabytes are those of all
files of the packages, with the bytecode that pip compiles; pip and setuptools do not count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environments import environment
from rows import Row, write

ROOT = Path(__file__).parents[1]
FOLDER = Path(tempfile.gettempdir()) / "podium-startup"
HELP_GOAL_S = 0.25
_INSTALLED = """
import pathlib, sysconfig
from importlib.metadata import distributions
site = pathlib.Path(sysconfig.get_path("purelib"))
brought = {one.metadata["Name"].lower() for one in distributions()} - {"pip", "setuptools"}
tools = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
files = (path for top in site.iterdir() if not top.name.startswith(tools) for path in (top, *top.rglob("*")))
print(len(brought), sum(path.stat().st_size for path in files if path.is_file()) / 1e6)
"""


def environments(folder: Path, *, anew: bool = True) -> tuple[Path | None, Path | None]:
    """Podium as it is in this checkout, and litellm; Podium is installed again if `anew`."""
    return environment(folder / "podium", str(ROOT), anew=anew), environment(folder / "litellm", "litellm")


def installed(programs: Path) -> tuple[int, float]:
    """Packages of an environment, and their megabytes."""
    shown = subprocess.run(
        [programs / "python", "-c", _INSTALLED], check=True, capture_output=True, text=True
    )
    packages, megabytes = shown.stdout.split()
    return int(packages), float(megabytes)


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall time and processor time of a command."""
    began = time.perf_counter()
    environ = {"PATH": os.environ.get("PATH", ""), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environ)
    _, status, used = os.wait4(child.pid, 0)
    taken = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with status {child.returncode}")
    return taken, used.ru_utime + used.ru_stime


def main(rounds: int, folder: Path, *, anew: bool) -> list[Row]:
    """Measure and print; returns the rows for --json."""
    ours, theirs = environments(folder, anew=anew)
    if ours is None or theirs is None:
        sys.exit(1)
    commands = {
        "podium --help": [str(ours / "podium"), "--help"],
        "podium --version": [str(ours / "podium"), "--version"],
        "import podium": [str(ours / "python"), "-c", "import podium"],
        "import litellm": [str(theirs / "python"), "-c", "import litellm"],
        "python -c pass": [str(ours / "python"), "-c", "pass"],
    }
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            run = seconds(command)
            if number:  # The first round reads the files from the disk.
                runs[name].append(run)
    used = {name: statistics.median(one for _, one in found) for name, found in runs.items()}
    for name, found in runs.items():
        taken = statistics.median(one for one, _ in found)
        print(f"{name:<18} processor {used[name]:.3f} s, clock {taken:.3f} s, at best {min(found)[0]:.3f} s")
    (packages, megabytes), (their_packages, their_megabytes) = installed(ours), installed(theirs)
    print(f"base install       {packages} packages, {megabytes:.0f} MB")
    print(f"litellm            {their_packages} packages, {their_megabytes:.0f} MB")

    import_litellm = ("import litellm", used["import litellm"])
    return [
        Row(
            "podium --help", used["podium --help"], "s", *import_litellm, HELP_GOAL_S, higher_is_better=False
        ),
        Row("podium --version", used["podium --version"], "s", *import_litellm, higher_is_better=False),
        Row("import podium", used["import podium"], "s", *import_litellm, higher_is_better=False),
        Row("base install: size", megabytes, "MB", "litellm", their_megabytes, higher_is_better=False),
        Row(
            "base install: packages", packages, "packages", "litellm", their_packages, higher_is_better=False
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--installed", action="store_true", help="Podium was installed there just now")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args()
    write(main(options.rounds, options.folder, anew=not options.installed), options.json)
