"""Shows the progress of a training run: the policy's figures at first and now.

On a terminal it draws a panel, elsewhere it prints lines. It reads metrics rows and nothing else, and loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from statistics import fmean
from types import TracebackType
from typing import Any, Protocol, Self

from rich.bar import Bar
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_SPAN = 10
""""At first" and "now" are means over this many rows, because single iterations are noisy."""
_LEVELS = "▁▂▃▄▅▆▇█"
_FIGURES = (
    ("reward", "reward", "{:.3f}"),
    ("valid", "valid plans", "{:.1%}"),
    ("accuracy", "accuracy", "{:.1%}"),
    ("steps", "steps", "{:.2f}"),
    ("cost_usd", "cost, $ a question", "{:.5f}"),
    ("entropy", "entropy, nats a token", "{:.3f}"),
)


class Display(Protocol):
    """Shows metrics rows while a run trains."""

    def begin(self, rows: Sequence[Mapping[str, Any]], *, elapsed_s: float) -> None:
        """Take the rows that a resumed run already has."""
        ...

    def show(self, row: Mapping[str, Any], *, elapsed_s: float) -> None:
        """Show the next row. `elapsed_s` is the time of training so far."""
        ...


def training_display(
    console: Console, *, iterations: int, minutes: float | None = None, title: str = "Training"
) -> AbstractContextManager[Display]:
    """The display that suits the console."""
    kind = LiveDisplay if console.is_terminal else PlainDisplay
    return kind(console, iterations=iterations, minutes=minutes, title=title)


class PlainDisplay:
    """Prints a line for the first, every tenth and the last iteration."""

    def __init__(self, console: Console, *, iterations: int, minutes: float | None, title: str) -> None:
        self._console, self._iterations, self._minutes, self._title = console, iterations, minutes, title
        self._rows: list[Mapping[str, Any]] = []
        self._pending: Mapping[str, Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pending is not None:
            self._print_row(self._pending, None)

    def begin(self, rows: Sequence[Mapping[str, Any]], *, elapsed_s: float) -> None:
        self._rows = list(rows)
        resumed = f", {len(rows)} of them done" if rows else ""
        self._print(f"{self._title}: {self._iterations} iterations{resumed}")

    def show(self, row: Mapping[str, Any], *, elapsed_s: float) -> None:
        self._rows.append(row)
        self._pending = row
        done = row["iteration"] + 1
        if done == 1 or done % 10 == 0 or done == self._iterations:
            self._print_row(row, seconds_left(self._rows, elapsed_s, self._iterations, self._minutes))

    def _print_row(self, row: Mapping[str, Any], left: float | None) -> None:
        self._pending = None
        ending = "" if left is None else f"  {clock(left)} left"
        self._print(
            f"iteration {row['iteration'] + 1:4d}/{self._iterations}  reward {row['reward']:.3f}"
            f"  valid {row['valid']:6.1%}  accuracy {row['accuracy']:6.1%}  steps {row['steps']:.2f}"
            f"  cost ${row['cost_usd']:.5f}{ending}"
        )

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


class LiveDisplay:
    """Draws one panel anew for each row. The panel stays on the screen when training ends."""

    def __init__(self, console: Console, *, iterations: int, minutes: float | None, title: str) -> None:
        self._iterations, self._minutes, self._title = iterations, minutes, title
        self._rows: list[Mapping[str, Any]] = []
        # Drawn only when a row comes: a refresh thread would compete with torch for the processor.
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, rows: Sequence[Mapping[str, Any]], *, elapsed_s: float) -> None:
        self._rows = list(rows)
        self._draw(elapsed_s)

    def show(self, row: Mapping[str, Any], *, elapsed_s: float) -> None:
        self._rows.append(row)
        self._draw(elapsed_s)

    def _draw(self, elapsed_s: float) -> None:
        panel = training_panel(
            self._rows,
            elapsed_s=elapsed_s,
            iterations=self._iterations,
            minutes=self._minutes,
            title=self._title,
        )
        self._live.update(panel, refresh=True)


def training_panel(
    rows: Sequence[Mapping[str, Any]],
    *,
    elapsed_s: float,
    iterations: int,
    minutes: float | None,
    title: str,
) -> Panel:
    """The run's progress, its figures at first and now, and each worker's share of the planned steps."""
    left = seconds_left(rows, elapsed_s, iterations, minutes)
    progress = Table.grid(padding=(0, 2))
    progress.add_row(
        f"iteration {len(rows)}/{iterations}",
        Bar(iterations, 0, len(rows), width=24, color="green"),
        f"{clock(elapsed_s)} gone" + ("" if left is None else f", {clock(left)} left"),
    )
    parts: list[RenderableType] = [progress]
    if rows:
        parts += [Text(), _figures(rows), Text(), _workers(rows)]
    return Panel(Group(*parts), title=title, title_align="left", expand=False)


def seconds_left(
    rows: Sequence[Mapping[str, Any]], elapsed_s: float, iterations: int, minutes: float | None
) -> float | None:
    """Estimated seconds until the last iteration or the time limit, whichever comes first; None without rows."""
    if not rows:
        return None
    by_iterations = elapsed_s / len(rows) * (iterations - len(rows))
    return by_iterations if minutes is None else max(0.0, min(by_iterations, minutes * 60 - elapsed_s))


def clock(seconds: float) -> str:
    """Minutes and seconds, as in "2:05"."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def sparkline(values: Sequence[float], width: int = 32) -> str:
    """Draw the values, in order, as at most `width` block characters, each the mean of its part."""
    count = min(width, len(values))
    edges = [round(i * len(values) / count) for i in range(count + 1)]
    blocks = [fmean(values[a:b]) for a, b in pairwise(edges)]
    low, high = min(blocks), max(blocks)
    scale = (len(_LEVELS) - 1) / (high - low) if high > low else 0.0
    return "".join(_LEVELS[round((value - low) * scale)] for value in blocks)


def _figures(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("", Text("at first", "dim"), Text("now", "dim"), "")
    for key, label, form in _FIGURES:
        values = [float(row[key]) for row in rows]
        first, now = fmean(values[:_SPAN]), fmean(values[-_SPAN:])
        table.add_row(
            label, Text(form.format(first), "dim"), Text(form.format(now), "bold"), sparkline(values)
        )
    return table


def _workers(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Each worker's share of the planned steps, over the latest rows."""
    recent = [row["workers"] for row in rows[-_SPAN:]]
    shares = {
        name: fmean(row.get(name, 0.0) for row in recent) for name in sorted({n for r in recent for n in r})
    }
    table = Table.grid(padding=(0, 2))
    for name, share in sorted(shares.items(), key=lambda item: -item[1])[:12]:
        table.add_row(name, f"{share:.0%}", Bar(1.0, 0, share, width=24, color="cyan"))
    return table


class NoDisplay:
    """A display that shows nothing."""

    def __enter__(self) -> NoDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def begin(self, rows: Sequence[Mapping[str, Any]], *, elapsed_s: float) -> None:
        return None

    def show(self, row: Mapping[str, Any], *, elapsed_s: float) -> None:
        return None
