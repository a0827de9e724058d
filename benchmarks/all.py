"""Runs the benchmarks one after another, and writes their figures as one table with a plot beside it.

python benchmarks/all.py [NAME ...] [--out docs/results]

`make bench` does this. Each script measures Podium and, where there is one, a comparable tool in the same run, and
writes its rows as JSON (`rows.Row`). A script that fails, or takes longer than its limit, is named below the table, and
the rest goes on. Together the limits are 22 minutes, which a slow machine needs; installing the peers for the first
time comes before them. What stands below a heading of the page is kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log10
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from podium.evals.charts import COLOURS
from podium.evals.markup import SafeHtml, tag

HERE = Path(__file__).parent
ROW, WIDTH, BAR, MARGIN = 24, 1100, 240, 16


@dataclass(frozen=True, slots=True)
class Script:
    """A benchmark, and how long it may take."""

    name: str
    limit_s: int
    arguments: tuple[str, ...] = ()


SCRIPTS = (
    Script("graph", 80),
    Script("calls", 90),
    Script("in_flight", 60),
    Script("serve", 240),
    Script("plans", 90, ("--plans", "64")),
    Script("grpo", 400, ("--iterations", "2")),
    Script("traces", 200),
    Script("startup", 150, ("--installed", "--rounds", "8")),
)


class Result(BaseModel):
    """A row that a script wrote."""

    work: str
    figure: float
    unit: str = ""
    peer: str | None = None
    peer_figure: float | None = None
    goal: float | str | None = None
    """A number, or text with the figure's unit such as "≤ 15 s": of the figure. Other text, such as "≥ 3": of the
    ratio, or of the figure where there is no peer."""
    higher_is_better: bool = True

    @property
    def ratio(self) -> float | None:
        """Our figure divided by the peer's."""
        return self.figure / self.peer_figure if self.peer_figure else None

    @property
    def _of_the_figure(self) -> bool:
        return isinstance(self.goal, str) and self.unit != "" and self.goal.endswith(f" {self.unit}")

    @property
    def reached(self) -> str:
        """Whether the goal is reached; nothing where there is none."""
        if self.goal is None or self.goal == "":
            return ""
        if isinstance(self.goal, str):
            sign, number = self.goal.split()[:2]
            figure = (None if self._of_the_figure else self.ratio) or self.figure
            goal, high = float(number.replace(",", "")), sign == "≥"
        else:
            figure, goal, high = self.figure, self.goal, self.higher_is_better
        return "yes" if (figure >= goal if high else figure <= goal) else "no"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        theirs = "" if self.peer_figure is None else f"{self.peer}: {shown(self.peer_figure)} {self.unit}"
        goal = self.goal or ""
        if isinstance(goal, float):
            goal = f"{'≥' if self.higher_is_better else '≤'} {shown(goal)} {self.unit}"
        elif goal and self.ratio and not self._of_the_figure:
            goal = f"ratio {goal}"
        ratio = f"{self.ratio:.3g}" if self.ratio else ""
        ours = f"{shown(self.figure)} {self.unit}"
        return self.work, ours.strip(), theirs.strip(), ratio, goal.strip(), self.reached


def shown(figure: float) -> str:
    """Three digits, or all before the point."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def run(script: Script) -> tuple[list[Result], str | None]:
    """The rows of one script, and why there are none."""
    path = HERE / f"{script.name}.py"
    if not path.exists():
        return [], "is not in this checkout"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        print(f"\n== {path.name}, at most {script.limit_s} s", flush=True)
        words = [sys.executable, str(path), *script.arguments, "--json", str(file)]
        with subprocess.Popen(words, start_new_session=True) as process:
            try:
                status = process.wait(script.limit_s)
            except subprocess.TimeoutExpired:
                return [], f"did not end within {script.limit_s} s"
            finally:
                end(process)
        if status or not file.exists():
            return [], f"ended with status {status}"
        return TypeAdapter(list[Result]).validate_json(file.read_bytes()), None


def end(process: subprocess.Popen[bytes]) -> None:
    """End a script and every process that it started and left."""
    with suppress(ProcessLookupError):  # All have ended.
        os.killpg(process.pid, signal.SIGKILL)


def page(results: Sequence[Result], failed: dict[str, str], now: datetime, load: float) -> str:
    """The table in Markdown."""
    lines = [
        "# Benchmarks",
        "",
        f"`make bench` on {now:%Y-%m-%d}, commit {commit()}: {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {platform.system()}. Load before: {load:.1f}. Workers are "
        "endpoints on the same machine, or simulated. A ratio is Podium's figure divided by the peer's, both from this "
        "run.",
        "",
        "| work | Podium | peer | ratio | goal | reached |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in result.cells)} |" for result in results),
        "",
        "![How many times as good as its peer each figure is](bench.svg)",
    ]
    if failed:
        lines += ["", "Not measured:", "", *(f"- `{name}.py` {why}." for name, why in failed.items())]
    return "\n".join(lines) + "\n"


def plot(results: Sequence[Result]) -> SafeHtml:
    """A bar for each comparison: how many times as good as its peer Podium is, on a logarithmic scale."""
    compared = [(result, result.ratio) for result in results if result.ratio]
    better = [ratio if result.higher_is_better else 1 / ratio for result, ratio in compared]
    most = max([1.0, *(abs(log10(times)) for times in better)])
    middle = WIDTH - MARGIN - 60 - BAR / 2
    parts: list[SafeHtml] = [
        tag("rect", width=WIDTH, height=ROW * (len(better) + 1) + MARGIN, fill="#ffffff")
    ]
    for number, ((result, _), times) in enumerate(zip(compared, better, strict=True)):
        y, length = MARGIN + ROW * number, BAR / 2 * log10(times) / most
        label = f"{result.work}, beside {result.peer}"
        parts += [
            tag("text", label, x=middle - BAR / 2 - 8, y=y + 14, text_anchor="end"),
            tag(
                "rect",
                x=min(middle, middle + length),
                y=y + 3,
                width=abs(length),
                height=ROW - 8,
                fill=COLOURS[times < 1],
            ),
            tag("text", f"{times:.2g}", x=max(middle, middle + length) + 4, y=y + 14),
        ]
    bottom = MARGIN + ROW * len(better)
    parts.append(tag("line", x1=middle, x2=middle, y1=MARGIN, y2=bottom, stroke="#5f6670"))
    parts.append(
        tag(
            "text",
            "times as good as the peer; at the line: equal",
            x=middle,
            y=bottom + 14,
            text_anchor="middle",
        )
    )
    style = tag("style", "text { font: 11px system-ui, sans-serif; fill: #5f6670; }")
    size = f"0 0 {WIDTH} {ROW * (len(better) + 1) + MARGIN}"
    return tag("svg", style, *parts, xmlns="http://www.w3.org/2000/svg", viewBox=size)


def commit() -> str:
    """The commit of this checkout, and whether files differ from it."""
    try:
        words = ["git", "-C", str(HERE), "describe", "--always", "--dirty=, with changes"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def main(names: Sequence[str], out: Path) -> int:
    """Run, write and return the exit status: 1 if a script failed."""
    now, load = datetime.now(UTC), os.getloadavg()[0]
    results: list[Result] = []
    failed: dict[str, str] = {}
    for script in SCRIPTS:
        if not names or script.name in names:
            rows, why = run(script)
            results += rows
            if why is not None:
                failed[script.name] = why
                print(f"{script.name}.py {why}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    text = page(results, failed, now, load)
    file = out / "bench.md"
    _, heading, below = (file.read_text() if file.exists() else "").partition("\n## ")
    file.write_text(text + heading + below)
    (out / "bench.svg").write_text(plot(results) + "\n")
    print(f"\n{text}\nWritten to {file} and bench.svg.")
    return 1 if failed else 0


if __name__ == "__main__":
    import peers
    import serve
    import startup
    from environments import environment

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which; all: {', '.join(each.name for each in SCRIPTS)}"
    )
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "results")
    options = parser.parse_args()
    if unknown := set(options.names) - {script.name for script in SCRIPTS}:
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}")
    for peer in (peers.ENVIRONMENT, serve.LITELLM):
        environment(*peer)
    if not options.names or "startup" in options.names:
        startup.environments(startup.FOLDER)
    sys.exit(main(options.names, options.out))
