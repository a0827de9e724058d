"""The table of a comparison, for a terminal and for Markdown. JSON output is the comparison itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.evals.comparison import Comparison, ComparisonRow
from podium.evals.stats import Interval

if TYPE_CHECKING:
    from rich.console import RenderableType

HEADINGS = ("planner", "accuracy", "Conductor ahead by", "steps", "calls", "$ / 1000", "seconds")
"""Costs are dollars per thousand questions, because the cost of one question is too small to read."""

_LEAST = 0.0005
"""The smallest share that one decimal of a percentage shows."""
_SMALLEST_P = 0.0001
"""The smallest probability that is shown. Smaller probabilities are shown as smaller than this."""


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    return (
        row.label,
        f"{percent(row.accuracy.mean)} {format_interval(row.accuracy)}",
        _ahead(row),
        f"{row.steps:.2f}",
        f"{row.calls:.2f}",
        f"{row.cost_usd * 1000:.3f}",
        f"{row.latency_s:.1f}",
    )


def table_cells(comparison: Comparison) -> list[tuple[str, ...]]:
    """Headings and rows. Without a Conductor there is no column of differences. Without times there is no column of
    seconds."""
    lines = [HEADINGS, *map(_cells, comparison.rows)]
    left_out = {
        "Conductor ahead by": all(row.difference is None for row in comparison.rows),
        "seconds": not comparison.is_timed,
    }
    lines[0] = tuple(heading.replace("Conductor", comparison.reference) for heading in HEADINGS)
    columns = [index for index, heading in enumerate(HEADINGS) if not left_out.get(heading)]
    return [tuple(line[index] for index in columns) for line in lines]


def table_notes(comparison: Comparison) -> Iterator[str]:
    conditions = ", ".join(_conditions(comparison))
    yield f"{conditions}. In brackets: 95 % intervals over questions; differences are paired, in points."
    tested = sum(row.adjusted_p is not None for row in comparison.rows)
    if tested:
        yield (
            "p: the probability of so large a difference if both are right equally often (McNemar's test; with "
            "repeated questions a permutation test that keeps a question's repeats together), adjusted by Holm's "
            f"method for the {_counted(tested, 'row')} that {'has' if tested == 1 else 'have'} one."
        )
    yield from comparison.notes
    for row in comparison.rows:
        if row.validity < 1:
            lost = 1 - row.validity
            yield (
                f"{row.label}: {percent(lost) if lost >= _LEAST else 'under 0.1 %'} of its plans could not be "
                "read or run; these questions count as wrong."
            )
    failures = sum(row.failures for row in comparison.answering)
    if failures:
        yield f"{failures} answers lack a step because a worker failed; they count as they are."
    ungraded = sum(row.ungraded for row in comparison.answering)
    if ungraded:
        yield f"{ungraded} answers could not be graded; they are left out of accuracies."
    yield from _money(comparison)
    yield from comparison.caveats
    yield from _beyond_the_recording(comparison)


def _beyond_the_recording(comparison: Comparison) -> Iterator[str]:
    for row in comparison.rows:
        lacking = row.unrecorded
        if lacking is not None:
            yield (
                f"{row.label}: the recording has no response to {_counted(lacking.steps, 'step')} in {lacking.plans} "
                f"of {_counted(lacking.of, 'plan')}; these steps failed, and the row shows the answers without them."
            )
        if row.beyond_recording:
            yield (
                f"{row.label}: {percent(row.beyond_recording)} of its recorded responses answer the plain "
                "question, although the step had a rewritten subtask or read other steps. A recording cannot show what "
                "that changes."
            )


def _conditions(comparison: Comparison) -> Iterator[str]:
    yield f"{comparison.subject}, seed {comparison.seed}"
    if comparison.max_steps is not None:
        yield f"at most {_counted(comparison.max_steps, 'step')}"
    if comparison.rounds is not None:
        yield _counted(comparison.rounds, "round")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _money(comparison: Comparison) -> Iterator[str]:
    grading = sum(row.grading_usd for row in comparison.answering)
    if grading:
        yield f"Grading the answers cost ${grading:.2f}, which no row includes."
    saved = sum(row.saved_usd for row in comparison.answering)
    if saved:
        share = saved / sum(row.cost_usd for row in comparison.answering)
        yield (
            f"{percent(share)} of these dollars were not paid again, because a response cache had the answers. The "
            "table counts the dollars and seconds of their first calls."
        )


def comparison_markdown(comparison: Comparison) -> str:
    headings, *rows = table_cells(comparison)
    lines = [headings, ("---", *["---:"] * (len(headings) - 1)), *rows]
    table = "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)
    return table + "\n\n" + "\n\n".join(table_notes(comparison)) + "\n"


def terminal_table(comparison: Comparison) -> RenderableType:
    """The table and its notes, for `rich`."""
    from rich.console import Group  # noqa: PLC0415 - only where something is drawn
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    title = "Recorded responses" if comparison.recorded else None
    table = Table(title=title, title_justify="left")
    headings, *rows = table_cells(comparison)
    for position, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if position else "left",
            no_wrap=position > 0,
            min_width=None if position else 20,
        )
    for row, line in zip(comparison.rows, rows, strict=True):
        style = {"conductor": "bold", "oracle": "dim"}.get(row.kind)
        table.add_row(*(Text(cell) for cell in line), style=style)
    return Group(table, *(Text(note, style="dim") for note in table_notes(comparison)))


def percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _ahead(row: ComparisonRow) -> str:
    if row.difference is None:
        return ""
    p = row.adjusted_p
    tested = "" if p is None else f", p {p:.2g}" if p >= _SMALLEST_P else f", p < {_SMALLEST_P}"
    return f"{points(row.difference.mean)} {format_interval(row.difference)}{tested}"


def points(difference: float) -> str:
    """A difference of two shares, in percentage points with its sign."""
    return f"{difference * 100:+.1f}"


def format_interval(interval: Interval) -> str:
    """The bounds of a share's interval, in percent."""
    return f"[{interval.low * 100:.1f}, {interval.high * 100:.1f}]"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
